package service

import (
	"flag"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var server = atolltest.Shared{Options: atolltest.Options{Env: append([]string{"ATOLL_POOL_SIZE=2", "ATOLL_CLOUDFLARE=on", "ATOLL_E2B=on", "ATOLL_MODEL_ALLOW=127.0.0.1"}, searchSettings...)}}

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	return server.Get(t)
}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.run").Value.String() == "" { // all tests
		go installAhead()
	}
	server.Main(m)
}

// installAhead installs the packages that tests share, while the tests before them wait for servers. A
// test that needs a folder reports why it is missing.
func installAhead() {
	for _, folder := range []func() (string, error){pythonFolder, nodeFolder, conformanceFolder, pythonMCPFolder, crewFolder, llamaFolder, pydanticFolder} {
		_, _ = folder()
	}
}
