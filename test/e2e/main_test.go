// Package e2e tests a real server with real sandboxes over HTTP: what running a
// program means, what limits and hostile programs do, and what is left of it
// all afterwards.
//
// ATOLL_SOAK=1 runs the long versions of the tests.
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
