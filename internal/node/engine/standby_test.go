package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// ready is how many kernels are ready.
func (s *standby) ready(t *testing.T) int {
	t.Helper()
	return int(gauge(t, s.figures.idle))
}

// wait waits until so many are ready, and no other is being made.
func (s *standby) wait(t *testing.T, count int) {
	t.Helper()
	atolltest.Until(t, time.Minute, fmt.Sprintf("%d kernels are ready", count), func() bool { return s.ready(t) == count })
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// born is what a sandbox's kernel was started as.
func born(t *testing.T, e *Engine, id runtime.ID) runtime.ID {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.folder(id), "sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rec state.Record
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	return rec.Origin()
}

// others lists what the engine has besides a sandbox.
func others(t *testing.T, e *Engine, id runtime.ID) (ids []runtime.ID) {
	t.Helper()
	infos, err := e.host.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.ID != id {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// nothingRuns checks that a closed engine has left nothing.
func nothingRuns(t *testing.T, dir string) {
	t.Helper()
	left, err := atolltest.Trace(dir).Find()
	if err != nil || len(left.Processes)+len(left.Cgroups) > 0 {
		t.Errorf("the engine leaves %v, %v", left, err)
	}
	if folders, err := os.ReadDir(filepath.Join(dir, "state", Server, SandboxFolder)); err != nil || len(folders) > 0 {
		t.Errorf("the engine leaves the folders %v, %v", folders, err)
	}
}

// sleep puts a sandbox to sleep on disk.
func sleep(t *testing.T, live sandboxes.Live) {
	t.Helper()
	if err := live.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := live.EndProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wake(t *testing.T, n Sandboxes, r sandboxes.Recipe) sandboxes.Live {
	t.Helper()
	live, err := n.Restore(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// TestKernelsWaitForSleepers: a sandbox that sleeps on disk wakes as a kernel that
// waited, with all that is its own.
func TestKernelsWaitForSleepers(t *testing.T) {
	at := greeter(t)
	for _, c := range []struct {
		name   string
		change func(*sandboxes.Recipe)
	}{
		{"alone", func(*sandboxes.Recipe) {}},
		{"with a network", func(r *sandboxes.Recipe) { r.Connected = true }},
		{"with a volume", func(r *sandboxes.Recipe) { r.Tenant, r.Mounts = "ten_a", []storage.Mount{mountOf("team", "")} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, store := secured(t), volumes(t)
			e := open(t, dir, func(cfg *Config) {
				cfg.Standby, cfg.Volumes = 2, store
				cfg.Network.Egress.Open = []rules.Opening{{Net: netip.PrefixFrom(at.Addr(), 32), Port: at.Port()}}
			})
			n, r := e.Sandboxes(), recipe()
			c.change(&r)
			live := make1(t, n, r)
			was, _ := begin(t, live)
			shell(t, live, "echo mine | tee ~/own /tmp/own >/var/tmp/own; test ! -d /data/team || echo mine >/data/team/own")
			for range 2 {
				sleep(t, live)
				e.standby.wait(t, 1)
				if left, err := n.List(t.Context()); err != nil || !slices.Equal(left, []runtime.ID{r.ID}) {
					t.Errorf("of sandboxes there are %v, %v", left, err)
				}
				spare := others(t, e, r.ID)
				live = wake(t, n, r)
				if is := born(t, e, r.ID); len(spare) != 1 || is != spare[0] {
					t.Errorf("it woke as %s, while %v waited", is, spare)
				}
				if now, _ := ask(t, live); now != was {
					t.Errorf("woken, the server says %q; it said %q", now, was)
				}
				if out := shell(t, live, "hostname; cat ~/own /tmp/own /var/tmp/own; ls -A ~ | grep -c own"); out != string(r.ID)+"\nmine\nmine\nmine\n1" {
					t.Errorf("it has %q", out)
				}
				if r.Mounts != nil {
					if out := shell(t, live, "cat /data/team/own; echo more >>/data/team/own"); !strings.HasPrefix(out, "mine") {
						t.Errorf("its volume has %q", out)
					}
				}
				if r.Connected {
					if err := live.SetNetwork(runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(at.Addr(), 32)}}, nil); err != nil {
						t.Fatal(err)
					}
					if out := shell(t, live, fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/%s/%d && cat <&3'", at.Addr(), at.Port())); out != "hello" {
						t.Errorf("through its network it hears %q", out)
					}
				}
			}
			e.standby.wait(t, 1) // for the next time
			if err := live.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			nothingRuns(t, dir)
			if mounts := mounted(t, filepath.Join(dir, "state", Server)); mounts != 0 {
				t.Errorf("the engine leaves %d mounts", mounts)
			}
		})
	}
}

// TestAKernelThatDiedIsNotMissed checks that a standby kernel that died does not keep a
// sandbox from waking, nor one that a killed server has left.
func TestAKernelThatDiedIsNotMissed(t *testing.T) {
	dir := secured(t)
	e := open(t, dir, func(c *Config) { c.Standby = 1 })
	n, r := e.Sandboxes(), recipe()
	live := make1(t, n, r)
	was, _ := begin(t, live)
	sleep(t, live)
	e.standby.wait(t, 1)
	spare := others(t, e, r.ID)
	pids, err := e.host.cgroups.Group(string(spare[0])).Processes()
	if err != nil || len(pids) < 2 {
		t.Fatalf("%s waits with the processes %v, %v", spare, pids, err)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) { // they end with one another
			t.Fatal(err)
		}
	}
	live = wake(t, n, r)
	if is := born(t, e, r.ID); is != r.ID {
		t.Errorf("it woke as %s", is)
	}
	if now, _ := ask(t, live); now != was {
		t.Errorf("woken, the server says %q; it said %q", now, was)
	}
	if left := others(t, e, r.ID); slices.Contains(left, spare[0]) {
		t.Errorf("of the kernel that died there is %v", left)
	}

	// Its file server alone is dead.
	e.standby.wait(t, 1)
	spare = others(t, e, r.ID)
	if pids, err = e.host.cgroups.Group(string(spare[0])).Processes(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if state.HasArgument(pid, "gofer") {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	sleep(t, live)
	live = wake(t, n, r)
	if now, _ := ask(t, live); now != was {
		t.Errorf("woken, the server says %q; it said %q", now, was)
	}
	if err := live.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	nothingRuns(t, dir)
}

// TestKernelsWaitForForks checks that after a fork some kernels are kept started, are not
// taken for orphans, become the next forks, and end with the engine.
func TestKernelsWaitForForks(t *testing.T) {
	dir := secured(t)
	e := open(t, dir, func(c *Config) { c.Standby = 2 })
	n, r := e.Sandboxes(), recipe()
	live := make1(t, n, r)
	was, _ := begin(t, live)
	n.KeepStandby(r.ID, r, 5)
	e.standby.wait(t, 2)
	if left, err := n.List(t.Context()); err != nil || !slices.Equal(left, []runtime.ID{r.ID}) {
		t.Errorf("of sandboxes there are %v, %v", left, err)
	}
	usual, err := n.compatKey(r.ID, r)
	if err != nil {
		t.Fatal(err)
	}
	unlike := r
	unlike.Mounts = []storage.Mount{mountOf("team", "")}
	other := r
	other.Limits.Processes++
	for _, r := range []sandboxes.Recipe{unlike, other} {
		if key, err := n.compatKey(r.ID, r); err != nil || key == usual {
			t.Errorf("one with %+v has the key %+v, %v", r, key, err)
		}
	}
	if err := live.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	lives, spare := []sandboxes.Live{live}, others(t, e, r.ID)
	var forks []sandboxes.Recipe
	for i := 0; ; i++ { // until one finds none that waits: others may be made meanwhile
		fork := r
		fork.ID = runtime.NewID()
		if err := n.PrepareFork(t.Context(), r.ID, fork); err != nil {
			t.Fatal(err)
		}
		forks = append(forks, fork)
		ready := e.standby.forks[fork.ID].claim.Ready
		if i < 2 && !ready || i == 9 {
			t.Fatalf("fork %d has a kernel that was ready: %v", i, ready)
		}
		if !ready {
			break
		}
	}
	for i, fork := range forks {
		if err := n.Fork(t.Context(), r.ID, fork.ID); err != nil {
			t.Fatal(err)
		}
		lives = append(lives, wake(t, n, fork))
		if is := born(t, e, fork.ID); (i < 2) != slices.Contains(spare, is) || is == fork.ID {
			t.Errorf("fork %d is %s, while %v waited", i, is, spare)
		}
	}
	if err := live.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, live := range lives {
		if now, _ := ask(t, live); now != was {
			t.Errorf("a fork's server says %q; the first one's said %q", now, was)
		}
		shell(t, live, "echo mine >/tmp/own; echo mine >/var/tmp/own; test $(ls /tmp/own /var/tmp/own | wc -l) = 2")
	}
	e.standby.wait(t, 2)
	n.KeepStandby(r.ID, other, 2) // there may be two, and these were wanted last
	key, err := n.compatKey(r.ID, other)
	if err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "kernels wait for others", func() bool {
		e.standby.figures.mu.Lock()
		defer e.standby.figures.mu.Unlock()
		return e.standby.figures.sizes[key].idle == 2 && e.standby.figures.sum.idle == 2
	})
	for _, live := range lives {
		if err := live.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	abandoned := r
	abandoned.ID = runtime.NewID()
	if err := n.PrepareFork(t.Context(), r.ID, abandoned); err == nil {
		t.Error("there is a fork of what was destroyed")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	nothingRuns(t, dir)
}

// TestKernelsWaitNoLongerThanWanted checks that none waits once there is no demand.
func TestKernelsWaitNoLongerThanWanted(t *testing.T) {
	e := start(t, secured(t), func(c *Config) { c.Standby = 3 })
	n, r := e.Sandboxes(), recipe()
	sleep(t, make1(t, n, r))
	e.standby.wait(t, 1)
	var forks []sandboxes.Recipe
	for range 2 {
		fork := r
		fork.ID = runtime.NewID()
		if err := n.Fork(t.Context(), r.ID, fork.ID); err != nil {
			t.Fatal(err)
		}
		if err := n.EndProcesses(t.Context(), fork); err != nil {
			t.Fatal(err)
		}
		forks = append(forks, fork)
	}
	e.standby.wait(t, standbySleepers)
	for i, r := range append(forks, r) {
		if err := n.Remove(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		e.standby.wait(t, min(standbySleepers, len(forks)-i))
	}
	atolltest.Until(t, time.Minute, "the kernels are gone", func() bool { return len(others(t, e, "")) == 0 })
	e.standby.mu.Lock()
	defer e.standby.mu.Unlock()
	if len(e.standby.asleep) > 0 {
		t.Errorf("there sleep %v", e.standby.asleep)
	}
}
