package e2e

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

// Kernels that wait for copies would count as sandboxes that are left.
var server = atolltest.Shared{Options: atolltest.Options{Env: []string{
	"ATOLL_POOL_SIZE=2", "ATOLL_STANDBY_KERNELS=0",
	"ATOLL_APT_ARCHIVE=http://" + tenant.PresetHosts("debian")[0] + "/debian", // of TestApt
}}}

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	return server.Get(t)
}

func TestMain(m *testing.M) { server.Main(m) }
