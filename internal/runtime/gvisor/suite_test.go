package gvisor_test

import (
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/cgroup"
	"github.com/atoll-run/atoll/internal/runtime/gvisor"
	"github.com/atoll-run/atoll/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func open(t testing.TB, state string, groups *cgroup.Parent) sandboxtest.Runtime {
	t.Helper()
	sandboxtest.Binary(t, "gvisor-bin/gvisor_sentry")
	r, err := gvisor.New(gvisor.Config{
		Runsc: sandboxtest.Binary(t, "atoll-runsc"), Guest: sandboxtest.GuestImage(t), State: state, Cgroups: groups,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImage(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Driver{Open: open, Checkpoint: true})
}

func TestTree(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Driver{Open: open, Rootfs: sandboxtest.Tree, Checkpoint: true})
}
