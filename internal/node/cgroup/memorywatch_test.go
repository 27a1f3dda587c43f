package cgroup

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestWatchMemory: a program that eats memory is reported before the limit ends it, and
// then waits for what the reader of the watch does.
func TestWatchMemory(t *testing.T) {
	const bound, limit = 32 << 20, 64 << 20
	g := group(t, Limits{Memory: limit})
	w, err := g.WatchMemory(bound, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	told := make(chan error, 16)
	go func() {
		for {
			err := w.Wait()
			select {
			case told <- err:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	if out, exit := run(t, g, `head -c 8000000 /dev/zero | tail -c 7000000 | wc -c`); exit != nil || strings.TrimSpace(out) != "7000000" {
		t.Fatalf("a program within the limit: %q, %v", out, exit)
	}
	if len(told) > 0 {
		t.Error("a program far below the limit was reported")
	}
	join := `for f in ` + strings.Join(g.Procs(), " ") + `; do echo 0 >$f || exit 99; done; exec tail -c 200000000`
	cmd := exec.Command("sh", "-c", join)
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	cmd.Stdin = io.LimitReader(zero, 300_000_000)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-told:
		if err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill() // as the reader does
	case err := <-ended:
		t.Fatalf("it was ended first: %v", err)
	}
	<-ended
	if u := usage(t, g); u.OOMKills != 0 {
		t.Errorf("usage %+v", u)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Wait(); err == nil {
		t.Error("a closed watch reports")
	}
	g.unchanged(t, limit)

	// What does not end in time is ended by the kernel, as without a watch.
	if w, err = g.WatchMemory(bound, limit); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if out, exit := run(t, g, `head -c 300000000 /dev/zero | tail -c 280000000`); exit == nil || exit.ExitCode() != -1 && exit.ExitCode() != 137 {
		t.Errorf("a program that is not ended: %q, %v", out, exit)
	}
	t.Logf("it was ended after %s", time.Since(begun))
	if u := usage(t, g); u.OOMKills == 0 {
		t.Errorf("usage %+v", u)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	g.unchanged(t, limit)
}

// unchanged checks that a watch has left the group as it was.
func (g *Group) unchanged(t *testing.T, limit int64) {
	t.Helper()
	if g.parent.version != V1 {
		return
	}
	dir := filepath.Join(g.parent.dirs["memory"], g.name)
	atolltest.Until(t, 2*time.Second, "its limit is what it was", func() bool {
		got, err := readInt(filepath.Join(dir, "memory.limit_in_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		return got == limit
	})
}

// TestWatchMemoryV2 uses a folder in the place of a group: a machine has the memory
// controller in one version only.
func TestWatchMemoryV2(t *testing.T) {
	dir := t.TempDir()
	g := (&Parent{version: V2, dirs: map[string]string{"": filepath.Dir(dir)}}).Group(filepath.Base(dir))
	for _, name := range []string{"memory.max", "memory.high", "memory.swap.max", "memory.events"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, not %q: %v", name, got, want, err)
		}
	}
	w, err := g.WatchMemory(32<<20, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	is("memory.high", "67108864")
	is("memory.max", "201326592")
	if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte("high 1\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"memory.max", "memory.high"} { // what the kernel forgets with each write
		if err := os.Truncate(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	is("memory.high", "max")
	is("memory.max", "67108864")
	if err := w.Wait(); err == nil {
		t.Error("a closed watch reports")
	}
}
