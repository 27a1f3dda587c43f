package oci_test

import (
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/oci"
)

func TestMain(m *testing.M) { os.Exit(runtimetest.Main(m)) }

func open(binary string) func(testing.TB, string, *cgroup.Parent) runtimetest.Runtime {
	return func(t testing.TB, state string, groups *cgroup.Parent) runtimetest.Runtime {
		t.Helper()
		r, err := oci.New(oci.Config{Binary: binary, Guest: runtimetest.GuestImage(t), State: state, Cgroups: groups})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func TestImage(t *testing.T) {
	runtimetest.Run(t, runtimetest.Driver{Open: open("crun")})
}

func TestTree(t *testing.T) {
	runtimetest.Run(t, runtimetest.Driver{Open: open("crun"), Rootfs: runtimetest.Tree})
}

// TestRunc is for runtimes that make control groups of their own.
func TestRunc(t *testing.T) {
	runtimetest.Run(t, runtimetest.Driver{Open: open("runc")})
}
