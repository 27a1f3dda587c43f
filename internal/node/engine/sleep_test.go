package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// mine is a Live that goes with the test.
func mine(t *testing.T) func(sandboxes.Live, error) sandboxes.Live {
	t.Helper()
	return func(live sandboxes.Live, err error) sandboxes.Live {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := live.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return live
	}
}

func begin(t *testing.T, live sandboxes.Live) (was string, ticks string) {
	t.Helper()
	shell(t, live, sandboxtest.Program)
	return ask(t, live)
}

func ask(t *testing.T, live sandboxes.Live) (what, ticks string) {
	t.Helper()
	out := strings.TrimSpace(shell(t, live, sandboxtest.Told))
	i := strings.LastIndexByte(out, ' ')
	if i < 0 {
		t.Fatalf("the server says %q", out)
	}
	return out[:i], out[i+1:]
}

func TestNamedSandboxSleepsAndWakes(t *testing.T) {
	n := start(t, secured(t), nil).Sandboxes()
	r := recipe()
	live := mine(t)(n.Create(t.Context(), r))
	was, ticks := begin(t, live)
	generation := shell(t, live, "cat /etc/machine-id "+initclient.GenerationFile+"; hostname")
	shell(t, live, "echo in the root > /home/user/../note 2>/dev/null || true; echo x >/var/tmp/x")
	for range 2 {
		if err := live.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := live.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := live.EndProcesses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !n.HasCheckpoint(r.ID) {
			t.Fatal("a sleeping sandbox has no memory")
		}
		begun := time.Now()
		live = mine(t)(n.Restore(t.Context(), r))
		t.Logf("woken in %s", time.Since(begun))
		atolltest.Until(t, 20*time.Second, "its timer goes off", func() bool {
			now, later := ask(t, live)
			if now != was {
				t.Fatalf("woken, the server says %q; it said %q", now, was)
			}
			return later != ticks
		})
		again := shell(t, live, "cat /etc/machine-id "+initclient.GenerationFile+"; hostname")
		a, b := strings.Fields(generation), strings.Fields(again)
		if len(a) != 3 || len(b) != 3 || a[0] != b[0] || a[1] == b[1] || a[2] != string(r.ID) || b[2] != string(r.ID) {
			t.Errorf("machine id, generation and name were %q, and are %q", a, b)
		}
		if n.HasCheckpoint(r.ID) {
			t.Error("a sandbox that runs has a memory to wake with")
		}
	}

	// It is asked to sleep, and goes on after all.
	if err := live.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := live.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, _ := ask(t, live); now != was || n.HasCheckpoint(r.ID) {
		t.Errorf("the server says %q", now)
	}
}

func TestASandboxIsForkedManyTimes(t *testing.T) {
	n := start(t, secured(t), nil).Sandboxes()
	r := recipe()
	live := mine(t)(n.Create(t.Context(), r))
	was, _ := begin(t, live)
	if err := live.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	const count = 5
	forks := make([]sandboxes.Recipe, count)
	begun := time.Now()
	for i := range forks {
		forks[i] = recipe()
		if err := n.Fork(t.Context(), r.ID, forks[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	lives := []sandboxes.Live{live}
	for _, r := range forks {
		lives = append(lives, mine(t)(n.Restore(t.Context(), r)))
	}
	t.Logf("%d forks in %s", count, time.Since(begun))
	seen := map[string]bool{}
	for _, live := range lives {
		if now, _ := ask(t, live); now != was {
			t.Errorf("a fork's server says %q; the first one's said %q", now, was)
		}
		for _, word := range strings.Fields(shell(t, live, "cat /etc/machine-id; hostname; python3 -c 'import random; print(random.getrandbits(64))'; head -c8 /dev/urandom | od -An -tx8; echo $RANDOM$RANDOM$RANDOM; cat "+initclient.GenerationFile)) {
			if seen[word] {
				t.Errorf("two of them say %s", word)
			}
			seen[word] = true
		}
	}
	shell(t, lives[1], "echo mine >~/own")
	if out := shell(t, live, "ls ~"); strings.Contains(out, "own") {
		t.Errorf("a fork's file is in the first one's home: %s", out)
	}
}

func TestDamagedMemoryIsRefused(t *testing.T) {
	n := start(t, secured(t), nil).Sandboxes()
	r := recipe()
	live := mine(t)(n.Create(t.Context(), r))
	shell(t, live, "echo kept >~/kept")
	if err := errors.Join(live.Checkpoint(t.Context()), live.EndProcesses(t.Context())); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.e.host.sandboxDir(r.ID), checkpointDir, "pages.img")
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("no memory"), 1<<20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := n.Restore(t.Context(), r); !errors.Is(err, sandboxes.ErrCheckpoint) {
		t.Fatalf("woken from a damaged memory: %v", err)
	}
	if !n.HasCheckpoint(r.ID) {
		t.Error("a memory that was refused is gone")
	}
	other := r
	other.Limits.Memory += 1 << 20
	if _, err := n.Restore(t.Context(), other); !errors.Is(err, sandboxes.ErrCheckpoint) {
		t.Errorf("woken with other limits: %v", err)
	}
	r.FromFiles = true
	live = mine(t)(n.Create(t.Context(), r))
	if out := shell(t, live, "cat ~/kept"); out != "kept" || n.HasCheckpoint(r.ID) {
		t.Errorf("made anew, it has %q", out)
	}
}

func TestFreezingEndsNoPrograms(t *testing.T) {
	live := mine(t)(start(t, secured(t), nil).Sandboxes().Create(t.Context(), recipe()))
	shell(t, live, "cd /tmp; (for i in $(seq 60); do ls / >/dev/null && (true) && echo $i >>done; done; touch over) >/dev/null 2>&1 </dev/null &")
	for range 15 {
		if err := errors.Join(live.Freeze(t.Context()), live.Freeze(t.Context()), live.Thaw(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if got := shell(t, live, "cd /tmp; for i in $(seq 3000); do [ -e over ] && break; sleep 0.01; done; wc -l <done"); got != "60" {
		t.Errorf("of 60 rounds, while it was frozen again and again, %s came to their end", got)
	}
}
