package oci_test

import (
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/cgroup"
	"github.com/atoll-run/atoll/internal/runtime/oci"
	"github.com/atoll-run/atoll/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func open(binary string) func(testing.TB, string, *cgroup.Parent) sandboxtest.Runtime {
	return func(t testing.TB, state string, groups *cgroup.Parent) sandboxtest.Runtime {
		t.Helper()
		r, err := oci.New(oci.Config{Binary: binary, Guest: sandboxtest.GuestImage(t), State: state, Cgroups: groups})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func TestImage(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Driver{Open: open("crun")})
}

func TestTree(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Driver{Open: open("crun"), Rootfs: sandboxtest.Tree})
}

// TestRunc is for runtimes that make control groups of their own.
func TestRunc(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Driver{Open: open("runc")})
}
