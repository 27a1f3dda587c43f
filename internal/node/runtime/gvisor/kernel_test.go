package gvisor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
)

// The kernel is what stands between a program and the machine, so what it could
// do were it taken over is part of the contract.
func TestTheKernelHasNoRights(t *testing.T) {
	for name, rootfs := range map[string]func(testing.TB) runtime.Rootfs{"image": runtimetest.Image, "group": runtimetest.Image, "tree": runtimetest.Tree} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var groups *cgroup.Parent
			if name == "group" { // then another process starts it
				groups = group(t)
			}
			r := open(t, dir, groups).(*gvisor.Runtime)
			t.Cleanup(func() { r.Close() })
			l := runtimetest.Limits()
			l.CPU = 1 // without control groups, whole processors
			inst, err := r.Create(t.Context(), runtime.Spec{ID: runtime.NewID(), Rootfs: rootfs(t), Limits: l})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			var record struct{ Pid int }
			data, err := os.ReadFile(filepath.Join(dir, string(inst.ID()), "sandbox.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &record); err != nil {
				t.Fatal(err)
			}
			proc := filepath.Join("/proc", strconv.Itoa(record.Pid))
			powerless(t, proc)
			lists, _ := filepath.Glob(proc + "/task/*/children")
			adjust := func(proc, want string) {
				if got := strings.TrimSpace(read(t, proc+"/oom_score_adj")); got != want {
					t.Errorf("oom_score_adj of %s is %s, not %s: out of memory would not end the whole sandbox", proc, got, want)
				}
			}
			adjust(proc, "1000")
			children := 0
			for _, list := range lists {
				for pid := range strings.FieldsSeq(read(t, list)) {
					powerless(t, "/proc/"+pid)
					adjust("/proc/"+pid, "0")
					children++
				}
			}
			if children == 0 {
				t.Error("the kernel has no process to run programs in")
			}
			noWayOut(t, proc)
		})
	}
}

// powerless checks every thread of a process.
func powerless(t *testing.T, proc string) {
	t.Helper()
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[set] = "0000000000000000"
	}
	if os.Geteuid() == 0 {
		want["Uid"], want["Gid"] = "65534 65534 65534 65534", "65534 65534 65534 65534"
	}
	threads, _ := filepath.Glob(proc + "/task/*/status")
	if len(threads) == 0 {
		t.Errorf("%s has no threads", proc)
	}
	for _, path := range threads {
		left := len(want)
		for line := range strings.Lines(read(t, path)) {
			name, value, _ := strings.Cut(line, ":")
			if w, ok := want[name]; ok {
				left--
				if got := strings.Join(strings.Fields(value), " "); got != w {
					t.Errorf("%s: %s is %s, want %s", path, name, got, w)
				}
			}
		}
		if left != 0 {
			t.Errorf("%s lacks %d lines", path, left)
		}
	}
}

// noWayOut checks that a process sees an empty root, and has no folder and no
// file of the machine's kernel open.
func noWayOut(t *testing.T, proc string) {
	t.Helper()
	if inside := read(t, proc+"/mountinfo"); strings.Count(inside, "\n") != 1 {
		t.Errorf("the kernel sees mounts besides its root:\n%s", inside)
	}
	files, err := filepath.Glob(proc + "/fd/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("open files of the kernel: %v, %v", files, err)
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			continue // closed meanwhile, or a socket's
		}
		target, _ := os.Readlink(f)
		if st.IsDir() || strings.Contains(target, "cpu.") || strings.Contains(target, "cgroup") || strings.HasPrefix(target, "/proc/") {
			t.Errorf("the kernel has %s open", target)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
