package service

import (
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var server = atolltest.Shared{Options: atolltest.Options{Env: append([]string{"ATOLL_POOL_SIZE=2", "ATOLL_CLOUDFLARE=on", "ATOLL_E2B=on", "ATOLL_MODEL_ALLOW=127.0.0.1"}, searchSettings...)}}

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	return server.Get(t)
}

func TestMain(m *testing.M) { server.Main(m) }
