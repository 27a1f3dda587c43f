package e2e

import (
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var server = atolltest.Shared{Options: atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2"}}}

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	return server.Get(t)
}

func TestMain(m *testing.M) { server.Main(m) }
