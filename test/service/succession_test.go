package service

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// succession is a line of servers over the same data. Each leaves its sandboxes to
// the next one; the end of the test destroys them, and checks that nothing is left.
type succession struct {
	testing.TB
	data     string
	settings []string

	mu     sync.Mutex
	server *atolltest.Server
}

// noPool is for servers whose pooled sandboxes nobody would use.
const noPool = "ATOLL_POOL_SIZE=0"

func newSuccession(t testing.TB) *succession {
	t.Helper()
	l := &succession{TB: t, settings: []string{"ATOLL_ON_EXIT=detach", noPool}}
	l.server = atolltest.Start(t, atolltest.Options{Env: l.settings})
	l.data = l.server.Keep(t)
	t.Cleanup(func() { // whatever has failed
		ctx := context.Background() // the test's own is over
		_ = l.now().Signal(syscall.SIGKILL)
		_ = l.now().Wait(ctx)
		last, err := atolltest.Launch(ctx, atolltest.Options{Data: l.data, Env: []string{"ATOLL_ON_EXIT=destroy", noPool}})
		if err != nil {
			t.Error(err)
			return
		}
		if err := last.Close(); err != nil {
			t.Errorf("%v\n%s", err, last.Log())
		}
		if err := atolltest.Trace(l.data).Gone(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// now is the server there is. Goroutines beside the test's may call it.
func (l *succession) now() *atolltest.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// next ends the server by a signal, and returns once the one after it listens.
func (l *succession) next(sig syscall.Signal) {
	l.Helper()
	was := l.now()
	if err := was.Signal(sig); err != nil {
		l.Fatal(err)
	}
	if err := was.Wait(l.Context()); err != nil && sig != syscall.SIGKILL {
		l.Errorf("after %s: %v\n%s", sig, err, was.Log())
	}
	next, err := atolltest.Launch(l.Context(), atolltest.Options{Data: l.data, Env: l.settings, NotReady: true})
	if err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = next
}
