// Package service tests a real server as a service: tenants and their limits,
// streams and webhooks, the agent tool, and what is left of it all when the
// server or its database dies in the middle.
//
// ATOLL_SOAK=1 runs the long versions of the tests.
package service

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
