package service

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// succession is a line of servers over the same data. Each leaves its sandboxes to
// the next one; the end of the test destroys them, and checks that nothing is left.
type succession struct {
	testing.TB
	data     string
	settings []string

	mu       sync.Mutex
	server   *atolltest.Server
	replaced chan struct{} // closed when server has a successor
}

// noPool is for servers whose pooled sandboxes would not be used.
const noPool = "ATOLL_POOL_SIZE=0"

func newSuccession(t testing.TB, settings ...string) *succession {
	t.Helper()
	l := &succession{TB: t, settings: append([]string{"ATOLL_ON_EXIT=detach", noPool}, settings...), replaced: make(chan struct{})}
	l.server = atolltest.Start(t, atolltest.Options{Env: l.settings})
	l.data = l.server.Keep(t)
	t.Cleanup(func() { // whatever has failed
		ctx := context.Background() // the test's own is over
		_ = l.now().Signal(syscall.SIGKILL)
		_ = l.now().Wait(ctx)
		last, err := atolltest.Launch(ctx, atolltest.Options{Data: l.data, Env: append(l.settings, "ATOLL_ON_EXIT=destroy", noPool)})
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

// next ends the server by a signal, and returns once the one after it listens. Meanwhile
// something else may be done.
func (l *succession) next(sig syscall.Signal, meanwhile ...func()) {
	l.Helper()
	was := l.now()
	if err := was.Signal(sig); err != nil {
		l.Fatal(err)
	}
	if err := was.Wait(l.Context()); err != nil && sig != syscall.SIGKILL {
		l.Errorf("after %s: %v\n%s", sig, err, was.Log())
	}
	for _, do := range meanwhile {
		do()
	}
	next, err := atolltest.Launch(l.Context(), atolltest.Options{Data: l.data, Env: l.settings, NotReady: true})
	if err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = next
	close(l.replaced)
	l.replaced = make(chan struct{})
}

// again returns when it is worth asking once more, after s gave no answer or was not
// ready: s is now, or has a successor.
func (l *succession) again(ctx context.Context, s *atolltest.Server) error {
	if err := s.WaitReady(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	l.mu.Lock()
	server, replaced := l.server, l.replaced
	l.mu.Unlock()
	if server != s {
		return nil
	}
	select {
	case <-replaced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tool calls a tool of the session "kills" until a server answers, and reports
// whether one did.
func (l *succession) tool(name string, input map[string]any, into any) (ok bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 3*time.Minute)
	defer cancel()
	for {
		s := l.now()
		a, err := s.Call(ctx, atolltest.Key, http.MethodPost, "/v1/sessions/kills/tools/"+name, input, nil)
		switch {
		case err == nil && a.Status == http.StatusOK:
			if into == nil {
				return true
			}
			if err := json.Unmarshal(a.Body, into); err != nil {
				l.Errorf("%v: %s", err, a.Body)
				return false
			}
			return true
		case err == nil && a.Status != http.StatusBadGateway && a.Status != http.StatusServiceUnavailable:
			l.Errorf("%s of %v: %d %s\n%s", name, input["sandbox"], a.Status, a.Body, s.Log())
			return false
		}
		if e := l.again(ctx, s); e != nil {
			l.Errorf("%s of %v is not answered: %v, %v", name, input["sandbox"], err, e)
			return false
		}
	}
}
