package gvisor

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

func TestASandboxThatCannotBeRemovedStaysOnRecord(t *testing.T) {
	groups, err := cgroup.Open("atoll-test-destroy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { groups.Remove() })
	dir, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	r := &Runtime{cfg: Config{Cgroups: groups}, dir: dir}
	id := runtime.NewID()
	if err := dir.Create(runtime.Spec{ID: id}); err != nil {
		t.Fatal(err)
	}
	group, err := groups.Create(string(id), cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(filepath.Dir(group.Procs()[0]), "inside") // it keeps the group from going
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Rmdir(inside) })

	if err := r.Destroy(t.Context(), id); err == nil {
		t.Error("a group that cannot be removed is no error")
	}
	if _, err := dir.Read(id); err != nil {
		t.Errorf("what is left has lost its record: %v", err)
	}
	if err := unix.Rmdir(inside); err != nil {
		t.Fatal(err)
	}
	if err := r.Destroy(t.Context(), id); err != nil {
		t.Error(err)
	}
	if left, err := r.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("after the second try there is %v, %v", left, err)
	}
}
