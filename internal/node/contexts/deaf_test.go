package contexts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// lied is a sandbox that answers requests as answer says, once it was asked
// whether there is the context.
func lied(t *testing.T, answer func(q *proto.Request) *proto.Reply) *rig {
	t.Helper()
	guest := clienttest.Lie(t, answer)
	covers, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := New()
	c.obey = time.Second
	return &rig{t, c, &Use{Guest: guest, Sandbox: runtime.NewID(), Redactor: covers}}
}

// alive is what is said of a process that does nothing.
func alive(id string) *proto.Reply { return &proto.Reply{Process: &proto.Process{ID: id, PID: 2}} }

// TestDeafSandboxes: a sandbox that does not do as it is told keeps no caller for
// longer than the code's time and the time it has to obey.
func TestDeafSandboxes(t *testing.T) {
	for name, answer := range map[string]func(q *proto.Request) *proto.Reply{
		"no answer to code": func(q *proto.Request) *proto.Reply {
			if q.Process != nil {
				return alive(q.Process.ID)
			}
			return nil
		},
		"no end": func(q *proto.Request) *proto.Reply { // Signal and Kill are acknowledged
			if q.Process != nil {
				return alive(q.Process.ID)
			}
			if q.Converse != nil {
				return alive(q.Converse.ID)
			}
			return &proto.Reply{}
		},
	} {
		for _, goes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, caller goes %t", name, goes), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				timeout := 100 * time.Millisecond
				if goes {
					timeout = time.Minute
				}
				r := lied(t, func(q *proto.Request) *proto.Reply {
					if goes && q.Converse != nil {
						cancel()
					}
					return answer(q)
				})
				// It is given up by its time to obey: the client would say something else, a minute later.
				_, err := r.try(ctx, "python-00000001", "1", timeout)
				if want := codecontext.NotResponding("python-00000001"); fault.KindOf(err) != fault.Conflict || err.Error() != want.Error() {
					t.Errorf("got %v, want %v", err, want)
				}
				if r.c.all[key{r.u.Sandbox, "python-00000001"}] != nil || len(r.c.busy) > 0 {
					t.Error("it is remembered")
				}
			})
		}
	}
	t.Run("no end of the end", func(t *testing.T) {
		r := lied(t, func(q *proto.Request) *proto.Reply {
			if q.Wait != nil {
				return nil
			}
			return &proto.Reply{}
		})
		if err := r.c.Delete(t.Context(), r.u, "python-00000001"); fault.KindOf(err) != fault.Conflict {
			t.Error(err)
		}
	})
}

// TestContextsThatAreSaidToBe: a sandbox that says yes to any context has no more
// of them in use than the others can.
func TestContextsThatAreSaidToBe(t *testing.T) {
	begun := make(chan struct{}, 2*codecontext.MaxContexts)
	r := lied(t, func(q *proto.Request) *proto.Reply {
		if q.Converse != nil {
			begun <- struct{}{}
			return nil
		}
		return alive("x")
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for i := range codecontext.MaxContexts {
		wait.Go(func() { _, _ = r.try(ctx, codecontext.ID(fmt.Sprintf("python-%08x", i)), "1", time.Minute) })
	}
	for range codecontext.MaxContexts {
		<-begun
	}
	for _, more := range []func() error{
		func() error { _, err := r.try(ctx, "python-ffffffff", "1", time.Minute); return err },
		func() error { _, err := r.c.Create(ctx, r.u, "bash", ""); return err },
	} {
		err := more()
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Exhausted || f.Dimension != "contexts" {
			t.Errorf("got %v", err)
		}
	}
	if _, err := r.try(ctx, "python-00000000", "1", time.Minute); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
	cancel()
	r.u.Guest.(*daemonclient.Client).Close()
	wait.Wait()
	if len(r.c.busy) > 0 {
		t.Errorf("in progress: %v", r.c.busy)
	}
}

// TestManyAtOnce: of those that are created at the same time as many are as fit.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t)
	made := make(chan error, codecontext.MaxContexts+8)
	for range codecontext.MaxContexts + 8 {
		go func() {
			_, err := r.c.Create(t.Context(), r.u, "bash", "")
			made <- err
		}()
	}
	refused := 0
	for range codecontext.MaxContexts + 8 {
		if err := <-made; fault.KindOf(err) == fault.Exhausted && err != nil {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	all, err := r.c.List(t.Context(), r.u)
	if err != nil || len(all) != codecontext.MaxContexts || refused != 8 {
		t.Errorf("%d contexts, %d refused, %v", len(all), refused, err)
	}
}
