package runtimetest

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// result is what the filling commands of the suite's program print.
type result struct {
	Count int64
	Error string
}

// testDisk: every writable place has a size and a number of files, and a
// sandbox lives on when it is full.
func testDisk(t *testing.T, f *fixture) {
	l := Limits()
	places := []struct {
		dir  string
		size int64
	}{{runtime.Home, l.Root}, {"/tmp", l.Tmp}, {"/dev/shm", l.Shm}}
	b := f.create(t)
	for _, place := range places {
		var r result
		b.ask(t, &r, "fill", place.dir)
		if r.Error != "ENOSPC" || r.Count > place.size || r.Count < place.size*3/4 {
			t.Errorf("%s took %d bytes of %d, then said %q", place.dir, r.Count, place.size, r.Error)
		}
	}
	for _, place := range places {
		var r result
		b.ask(t, &r, "inodes", place.dir)
		if most := int64(l.Inodes); r.Error != "ENOSPC" || r.Count > most+16 || r.Count < most*3/4 {
			t.Errorf("%s took %d files of %d, then said %q", place.dir, r.Count, most, r.Error)
		}
	}
	if got := b.run(t, "echo", "alive"); got != "[alive]\n" {
		t.Errorf("after that, a program printed %q", got)
	}
}

// testTasks: processes and descriptors run out for the program, not for the
// sandbox.
func testTasks(t *testing.T, f *fixture) {
	l := Limits()
	// Each process costs a kernel of the sandbox's own megabytes.
	roomy := func(s *runtime.Spec) { s.Limits.Memory = 512 << 20 }
	b, other := f.create(t, roomy), f.create(t, roomy)
	for range 2 { // the second finds as much room as the first
		var r result
		b.ask(t, &r, "tasks")
		if most := int64(l.Processes); r.Error != "EAGAIN" || r.Count >= most || r.Count < most/2 {
			t.Errorf("%d processes of %d were made, then: %q", r.Count, most, r.Error)
		}
		b.ask(t, &r, "files")
		if most := int64(l.OpenFiles); r.Error != "EMFILE" || r.Count >= most || r.Count < most/2 {
			t.Errorf("%d files of %d were opened, then: %q", r.Count, most, r.Error)
		}
	}
	// One sandbox's processes are not another's.
	hold := b.start(t, l, "hold")
	hold.line(t)
	var r result
	other.ask(t, &r, "tasks")
	if most := int64(l.Processes); r.Count < most/2 {
		t.Errorf("while another sandbox is full, %d processes of %d were made", r.Count, most)
	}
	must(t, b.guest.Kill(t.Context(), hold.id, syscall.SIGKILL))
	hold.wait(t)
}

// testMemory: a program that wants more than there is comes to an end, and it
// can be told why.
func testMemory(t *testing.T, f *fixture) {
	l := Limits()
	b := f.create(t)
	hog := b.start(t, l, "hog", "4000000000")
	// As a server does: the host kills, or the figure shows that it is time.
	var u runtime.Usage
	killed := false
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		select {
		case e := <-hog.end:
			if errors.Is(e.err, errEnded) {
				break // the kill took the sandbox along
			}
			if e.err == nil && e.ExitCode == 0 {
				t.Error("the program got all it wanted")
			}
			if e.err == nil && e.ExitCode != 128+int(syscall.SIGKILL) {
				t.Errorf("the program ended with %+v", e.Result)
			}
		case <-b.Done():
		case <-tick.C:
			var err error
			u, err = b.Usage(t.Context())
			must(t, err)
			if !killed && (u.OOMKills > 0 || u.Memory >= l.Memory) {
				killed = true
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := b.guest.Kill(ctx, hog.id, syscall.SIGKILL)
				cancel()
				if _, refused := errors.AsType[*initclient.Error](err); err != nil && !refused {
					t.Logf("the guest cannot kill: %v", err) // short of memory itself
					hog.cancel()
				}
			}
			continue
		case <-end:
			t.Fatalf("the program continues; usage %+v", u)
		}
		break
	}
	u, err := b.Usage(t.Context())
	must(t, err)
	if !killed && u.OOMKills == 0 {
		t.Errorf("nothing tells that memory ran out: %+v", u)
	}
	if most := 2 * l.Memory; u.PeakMemory < l.Memory/2 || u.PeakMemory > most {
		t.Errorf("peak memory %d of %d", u.PeakMemory, l.Memory)
	}
}

// testCPU: more threads do not get more than there is.
func testCPU(t *testing.T, f *fixture) {
	cores := 0.5
	if f.NoCgroups {
		cores = 1
		spec := f.spec(t)
		spec.Limits.CPU = 0.5
		if _, err := f.runtime.Create(t.Context(), spec); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("half a core that cannot be held: %v", err)
		}
	}
	b := f.create(t, func(s *runtime.Spec) { s.Limits.CPU = cores })
	before, err := b.Usage(t.Context())
	must(t, err)
	begun := time.Now()
	b.run(t, "spin", "4", "1500ms")
	wall := time.Since(begun).Seconds()
	after, err := b.Usage(t.Context())
	must(t, err)
	// A quota is given out in periods of 100 ms to each processor.
	if used := after.CPUSeconds - before.CPUSeconds; used <= 0.1 || used > wall*cores*1.3+0.2 {
		t.Errorf("%.2f s of CPU in %.2f s with %v cores", used, wall, cores)
	}
}
