package e2e

import (
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// Kernels that wait for copies would count as sandboxes that are left.
var server = atolltest.Shared{Options: atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2", "ATOLL_STANDBY_KERNELS=0"}}}

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	return server.Get(t)
}

func TestMain(m *testing.M) { server.Main(m) }
