package gvisor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// TestFileOperationsKeepNoDescriptor: the file server has as many descriptors open after
// hundreds of repetitions of an operation as before, or 1,000 with ATOLL_SOAK=1. A kernel
// puts off closing up to 100.
func TestFileOperationsKeepNoDescriptor(t *testing.T) {
	times, delayed := 250, 120
	if os.Getenv("ATOLL_SOAK") != "" {
		times = 1000
	}
	groups, err := cgroup.Open("atoll-test-descriptors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { groups.Remove() })
	r := open(t, filepath.Join(t.TempDir(), "state"), groups)
	t.Cleanup(func() { r.Close() })
	folder := t.TempDir()
	if err := os.Chown(folder, idmap.Base+runtime.UID, idmap.Base+runtime.GID); err != nil {
		t.Fatal(err)
	}
	limits := runtimetest.Limits()
	limits.CPU = 2
	inst, err := r.Create(t.Context(), runtime.Spec{
		ID: runtime.NewID(), Rootfs: runtimetest.Image(t), Limits: limits,
		Mounts: []runtime.Mount{{Source: folder, Target: "/data", Writable: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Destroy(t.Context())
	c, err := initclient.Dial(t.Context(), inst.Channel())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := func(args ...string) string {
		t.Helper()
		var out, complaint []byte
		res, err := c.Run(t.Context(), initclient.RunSpec{
			ID: initclient.NewRunID(), Timeout: time.Minute, OutputLimit: 1 << 16,
			Command: initclient.Command{Path: runtimetest.Probe, Argv: append([]string{"probe", "repeat"}, args...), Dir: "/", Limits: initclient.Limits{Processes: 40, OpenFiles: 64}},
		}, func(s initclient.Stream, p []byte) {
			if s == initclient.Stdout {
				out = append(out, p...)
			} else {
				complaint = append(complaint, p...)
			}
		})
		if err != nil || res.ExitCode != 0 {
			t.Errorf("%q: %+v, %v: %s", args, res, err, complaint)
		}
		return string(out)
	}
	server, err := inst.Holders()
	if err != nil || len(server) != 1 {
		t.Fatalf("the file servers are %v, %v", server, err)
	}
	opened := func() int {
		t.Helper()
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", server[0]))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	var names []string
	if err := json.Unmarshal([]byte(run()), &names); err != nil || len(names) < 20 {
		t.Fatalf("the operations are %q, %v", names, err)
	}
	slices.Sort(names)
	for _, name := range names {
		before := opened()
		run(name, fmt.Sprint(times), "/data")
		if after := opened(); after > before+delayed {
			t.Errorf("%q took the file server from %d to %d descriptors", name, before, after)
		}
	}
}
