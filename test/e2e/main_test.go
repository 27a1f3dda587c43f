// Package e2e tests a real server with real sandboxes over HTTP: what running a
// program means, what limits and hostile programs do, and what is left of it
// all afterwards.
//
// ATOLL_SOAK=1 runs the long versions of the tests.
package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// launch starts the server that most tests share.
var launch = sync.OnceValues(func() (*atolltest.Server, error) {
	return atolltest.Launch(context.Background(), atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2"}})
})

func shared(t testing.TB) *atolltest.Server {
	t.Helper()
	s, err := launch()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMain(m *testing.M) {
	for _, needed := range []func() (string, error){atolltest.Binary, atolltest.ImageDir} {
		if _, err := needed(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if s, err := launch(); err == nil {
		// After all that the tests have done to it, nothing may be left.
		if err := s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the shared server: %v\n%s", err, s.Log())
			code = 1
		}
	}
	os.Exit(code)
}
