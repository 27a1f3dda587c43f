//go:build soak

package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// unruly are programs that end badly or leave something behind.
var unruly = []rig.Program{
	{Language: execution.Python, Code: "raise SystemExit(3)"},
	{Language: execution.Python, Code: "import os; os.kill(os.getpid(), 9)"},
	{Language: execution.Python, Code: "import time; time.sleep(30)"},
	{Language: execution.Python, Code: "import sys\nfor _ in range(100): sys.stdout.write('x' * 1_000_000)"},
	{Language: execution.Python, Code: "x = []\nwhile True: x.append(bytes(10_000_000))"},
	{Language: execution.Python, Code: "open('/tmp/big', 'wb').write(bytes(200_000_000))"},
	{Language: execution.Bash, Code: "(setsid sleep 1000 &) ; (setsid sleep 1000 &)"},
	{Language: execution.Bash, Code: "for i in $(seq 1000); do : > /tmp/file-$i; done; kill -9 -1"},
	{Language: execution.Node, Code: "process.abort()"},
	{Language: execution.Node, Code: "setInterval(() => {}, 1000)"},
}

// TestSoak runs executions of every kind for ATOLL_SOAK_FOR (1 h), each client with a pause of
// ATOLL_SOAK_PAUSE (none) between two. It checks that the server's memory does not grow under that
// load, and that the server afterwards has as many processes, mounts and files as before.
func TestSoak(t *testing.T) {
	// A soak that is given up must take its server and mount along.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	length, pause := fromEnv(t, "ATOLL_SOAK_FOR", time.Hour), fromEnv(t, "ATOLL_SOAK_PAUSE", 0)
	if err := os.Chdir(".."); err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	data := os.Getenv("ATOLL_DATA_DIR")
	if data == "" {
		data = filepath.Join(root, "data")
	}
	r, err := rig.New(ctx, root, filepath.Join(data, "images"), "default")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := r.Serve(ctx, rig.Options{PoolSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	// The first executions make what stays: templates, connections, buffers.
	soak(ctx, t, s, min(length/4, time.Minute), 0)
	before := footprint(ctx, t, s)
	memory := sampleMemory(ctx, t, s, length)
	n := soak(ctx, t, s, length, pause)
	half, end := memory()
	after := footprint(ctx, t, s)
	t.Logf("%d executions\nbefore %+v\nafter  %+v", n, before, after)
	for _, c := range []struct {
		name          string
		before, after int
		spare         int // what may differ by chance
	}{
		{"sandboxes", before.Sandboxes, after.Sandboxes, 0},
		{"processes", before.Processes, after.Processes, 0},
		{"control groups", before.Groups, after.Groups, 0},
		{"mounts", before.Mounts, after.Mounts, 0},
		{"files", before.Files, after.Files, 0},
		{"descriptors", before.FDs, after.FDs, 0},
		{"goroutines", before.Goroutines, after.Goroutines, 0},
		// Memory that only grows differs between the quarters too; a server that idles gives memory back.
		{"MiB of the server's memory under load, second and last quarter", half, end, 32},
		{"MiB of the server's memory", int(before.RSS >> 20), int(after.RSS >> 20), 64},
	} {
		if c.after > c.before+c.spare {
			t.Errorf("%s: %d before, %d after %d executions", c.name, c.before, c.after, n)
		}
	}
}

// fromEnv returns the duration in an environment variable, or fallback without one.
func fromEnv(t *testing.T, name string, fallback time.Duration) time.Duration {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// sampleMemory records the server's resident memory 40 times over length. The function that it
// returns stops that, logs all samples, and returns the medians of the second and the last quarter in MiB.
func sampleMemory(ctx context.Context, t *testing.T, s *rig.Server, length time.Duration) func() (second, last int) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	var samples []int
	done := make(chan error, 1)
	go func() {
		for wait(ctx, length/40) == nil {
			m, err := s.Metrics(ctx)
			if ctx.Err() != nil {
				break
			}
			if err != nil {
				done <- err
				return
			}
			samples = append(samples, int(m.Sum("process_resident_memory_bytes"))>>20)
		}
		done <- nil
	}()
	return func() (int, int) {
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		t.Logf("MiB of the server's memory, every %s: %d", length/40, samples)
		if len(samples) < 4 {
			t.Fatalf("%d samples of the server's memory", len(samples))
		}
		quarter := len(samples) / 4
		return median(samples[quarter : 2*quarter]), median(samples[3*quarter:])
	}
}

func median(of []int) int {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// soak keeps clients busy for length and returns how many executions ended. Each client pauses after each of its executions.
func soak(ctx context.Context, t *testing.T, s *rig.Server, length, pause time.Duration) int {
	t.Helper()
	next := make(chan rig.Program)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with ctx
		for i := 0; ; i++ {
			p := unruly[i/5%len(unruly)]
			if i%5 > 0 {
				p = []rig.Program{pythonHello, nodeHello, bashHello, pandas}[i%5-1]
			}
			select {
			case next <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	got, err := closedLoop(ctx, loadClients, 0, length, func(ctx context.Context) error {
		if err := s.Attempt(ctx, <-next, 3*time.Second); err != nil {
			return err
		}
		if ctx.Err() == nil && pause > 0 {
			_ = wait(ctx, pause) // the loop sees that ctx ended
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.each)
}

// footprint counts once the pool has shrunk back to its size without demand,
// which takes minutes, and every used sandbox is gone. A goroutine comes and goes
// even then, so theirs is the lowest number of the time in which all else is
// steady.
func footprint(ctx context.Context, t *testing.T, s *rig.Server) rig.Footprint {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var last, steadied rig.Footprint
	goroutines := 0
	for steady := 0; steady < 10; {
		if err := s.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		s.CloseConnections()
		if err := wait(ctx, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		now, err := s.Footprint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", now)
		last = now
		now.RSS, now.Goroutines = 0, 0 // never quite steady
		if steady++; now != steadied {
			steady, goroutines = 0, last.Goroutines
		}
		steadied, goroutines = now, min(goroutines, last.Goroutines)
	}
	last.Goroutines = goroutines
	return last
}
