package gvisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
	"github.com/atoll-run/atoll/test/atolltest"
)

// grouped is a runtime whose sandboxes have control groups, so that they are started by
// processes that start one after the other.
func grouped(t *testing.T) (*gvisor.Runtime, *cgroup.Parent) {
	t.Helper()
	groups := group(t)
	r := open(t, t.TempDir(), groups).(*gvisor.Runtime)
	t.Cleanup(func() { r.Close() })
	return r, groups
}

// group is a parent of control groups, of the test's own.
func group(t *testing.T) *cgroup.Parent {
	t.Helper()
	groups, err := cgroup.Open("atoll-test-" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"))
	if err != nil {
		t.Fatalf("%v (the test must run as root)", err)
	}
	t.Cleanup(func() {
		if err := groups.Remove(); err != nil {
			t.Error(err)
		}
	})
	return groups
}

// children are the runsc processes that this process has started.
func children(t *testing.T) (pids []int) {
	t.Helper()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		data, _ := os.ReadFile(list) // of a thread that may have ended
		for _, field := range strings.Fields(string(data)) {
			if comm, _ := os.ReadFile("/proc/" + field + "/comm"); strings.TrimSpace(string(comm)) == "atoll-runsc" {
				pid, _ := strconv.Atoi(field)
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// zombies counts the children of a process that have ended and are not collected.
func zombies(pid int) (n int) {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(data)) {
			if stat, _ := os.ReadFile("/proc/" + child + "/stat"); strings.Contains(string(stat), ") Z ") {
				n++
			}
		}
	}
	return n
}

// descriptors are the files that a process has open, without the numbers of those that have no name.
func descriptors(t *testing.T, pid int) (files []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	if err != nil || len(links) == 0 {
		t.Fatalf("descriptors of %d: %v, %v", pid, links, err)
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // it was closed meanwhile
		}
		target, _, _ = strings.Cut(target, ":[")
		files = append(files, filepath.Base(target))
	}
	slices.Sort(files)
	return files
}

// has fails unless a process comes to have the files open that another one has, and no
// others. Both may still close some, by which they were started.
func has(t *testing.T, pid int, another func() []string) {
	t.Helper()
	var now, want []string
	defer func() {
		if !slices.Equal(now, want) {
			t.Logf("process %d has the descriptors\n%v, the other has\n%v", pid, now, want)
		}
	}()
	atolltest.Until(t, 10*time.Second, "it has the descriptors of the other", func() bool {
		now, want = descriptors(t, pid), another()
		return slices.Equal(now, want)
	})
}

// kernel is the process id of a sandbox's kernel: the one with a command line.
func kernel(t *testing.T, groups *cgroup.Parent, inst runtime.Instance) int {
	t.Helper()
	pids, err := groups.Group(string(inst.ID())).Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); strings.HasPrefix(string(line), "runsc-sandbox") {
			return pid
		}
	}
	t.Fatalf("none of %v is a kernel", pids)
	return 0
}

// start creates a sandbox that the test's end destroys, if nothing else has.
func start(t *testing.T, r *gvisor.Runtime) runtime.Instance {
	t.Helper()
	inst, err := r.Create(t.Context(), runtime.Spec{ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: runtimetest.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, inst) })
	return inst
}

func end(t *testing.T, inst runtime.Instance) {
	t.Helper()
	if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestOneProcessStartsManySandboxes: one after the other, each in its own group from its
// first page on, with no descriptor of those before it, and nothing of them is left in the
// process or of it.
func TestOneProcessStartsManySandboxes(t *testing.T) {
	r, groups := grouped(t)
	all := []runtime.Instance{start(t, r)}
	before := children(t)
	if len(before) != 1 {
		t.Fatalf("runsc processes after the first sandbox: %v", before)
	}
	open := descriptors(t, before[0])
	for range 12 {
		inst := start(t, r)
		all = append(all, inst)
		if usage, err := groups.Group(string(inst.ID())).Usage(); err != nil || usage.CPUSeconds < 0.01 {
			t.Errorf("the group of the sandbox used %+v, %v", usage, err)
		}
		if !answers(t, inst, 10*time.Second) {
			t.Error("the sandbox does not respond")
		}
	}
	first := kernel(t, groups, all[0])
	atolltest.Until(t, 10*time.Second, "the first kernel has no connection left by which it was started", func() bool {
		own := descriptors(t, first)
		at := slices.Index(own, "socket") // by which it is reached
		return at >= 0 && !slices.Contains(own[at+1:], "socket")
	})
	for _, inst := range all[1:] {
		has(t, kernel(t, groups, inst), func() []string { return descriptors(t, first) })
	}
	for _, inst := range all {
		end(t, inst)
	}
	has(t, before[0], func() []string { return open })
	if after := children(t); !slices.Equal(after, before) {
		t.Errorf("runsc processes: %v before, %v after", before, after)
	}
	atolltest.Until(t, 10*time.Second, "sandboxes that have ended are collected", func() bool { return zombies(before[0]) == 0 })
	groupsOf, err := os.ReadFile("/proc/" + strconv.Itoa(before[0]) + "/cgroup")
	if err != nil || strings.Contains(string(groupsOf), "atoll-test-") {
		t.Errorf("the process that started sandboxes is in %s, %v", groupsOf, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("runsc processes after Close: %v", left)
	}
}

// TestSandboxesOutliveWhatStartedThem, which may end at any time, and the next sandbox is
// started all the same.
func TestSandboxesOutliveWhatStartedThem(t *testing.T) {
	r, _ := grouped(t)
	all := []runtime.Instance{start(t, r)}
	defer func() {
		for _, inst := range all {
			end(t, inst)
		}
	}()
	// With 0 it ends before it is asked, or as it is; then it is asked and does not look.
	for _, later := range []time.Duration{0, 50 * time.Millisecond} {
		for _, pid := range children(t) {
			if later > 0 {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(later, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, start(t, r))
	}
	for _, inst := range all {
		if !answers(t, inst, 10*time.Second) {
			t.Errorf("sandbox %s does not answer", inst.ID())
		}
	}
}

// TestABurstOfSandboxes: as many processes as start sandboxes at once, and few are kept.
func TestABurstOfSandboxes(t *testing.T) {
	r, _ := grouped(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			inst, err := r.Create(t.Context(), runtime.Spec{ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: runtimetest.Limits()})
			if err != nil {
				t.Error(err)
				return
			}
			end(t, inst)
		})
	}
	all.Wait()
	if n, most := len(children(t)), 2*goruntime.NumCPU(); n > most {
		t.Errorf("%d runsc processes are kept, at most %d should", n, most)
	}
}

// TestAStartThatFails says why, whatever made it, and leaves nothing.
func TestAStartThatFails(t *testing.T) {
	r, groups := grouped(t)
	spec := runtime.Spec{ID: runtime.NewID(), Rootfs: runtime.Rootfs{Image: filepath.Join(t.TempDir(), "missing")}, Limits: runtimetest.Limits()}
	if _, err := r.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("an image that is not there: %v", err)
	}
	for wait := range 8 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(wait)*5*time.Millisecond, errors.New("too late"))
		inst, err := r.Create(ctx, runtime.Spec{ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: runtimetest.Limits()})
		cancel()
		if err == nil {
			end(t, inst)
		} else if !strings.Contains(err.Error(), "too late") {
			t.Errorf("given up after %d ms: %v", 5*wait, err)
		}
	}
	if left, err := r.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if left, err := groups.List(); err != nil || len(left) != 0 {
		t.Errorf("groups that are left: %v, %v", left, err)
	}
	end(t, start(t, r))
}
