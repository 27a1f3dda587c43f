package gvisor_test

import (
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
)

func TestMain(m *testing.M) { os.Exit(runtimetest.Main(m)) }

func open(t testing.TB, state string, groups *cgroup.Parent) runtimetest.Runtime {
	t.Helper()
	runtimetest.Binary(t, "gvisor-bin/gvisor_sentry")
	r, err := gvisor.New(gvisor.Config{
		Runsc: runtimetest.Binary(t, "atoll-runsc"), Guest: runtimetest.GuestImage(t), State: state, Cgroups: groups,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImage(t *testing.T) {
	runtimetest.Run(t, runtimetest.Driver{Open: open, Checkpoint: true})
}

func TestTree(t *testing.T) {
	runtimetest.Run(t, runtimetest.Driver{Open: open, Rootfs: runtimetest.Tree, Checkpoint: true})
}
