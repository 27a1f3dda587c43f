package loop

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// unread is a store that gives no log, and counts the runs that are given back.
type unread struct {
	run.Store
	log      bool // whether it returns their beginnings
	released int
}

func (a *unread) Log(ctx context.Context, id run.ID) ([]run.Entry, error) {
	if !a.log {
		return nil, errDead
	}
	entries, err := a.Store.Log(ctx, id)
	return entries[:min(2, len(entries))], err // the model was asked
}

func (a *unread) Release(context.Context, run.ID, run.Lease, time.Time) error {
	a.released++
	return nil
}

// silent are events that cannot be read.
type silent struct{ Events }

func (silent) Published(context.Context, *run.Run) (*run.Published, error) { return nil, errDead }

// TestCancelledWithoutLog: a cancelled run whose log, or events, cannot be read is given back, to be
// ended later.
func TestCancelledWithoutLog(t *testing.T) {
	k := newKit(t, models{"m": script(adds)})
	id, done := k.begin(t, k.loop(t, "a", k.store), request("1"))
	<-done
	for _, log := range []bool{false, true} {
		store := &unread{Store: k.store, log: log}
		l := New(Config{Store: store, Models: k.models, Events: silent{k.bus.RunEvents(storetest.Box(t))}, Log: slog.New(slog.DiscardHandler), Holder: "b"})
		d := newDrive(l, run.Run{ID: id, Tenant: owner})
		d.cancel(errCancelled)
		d.drive()
		if store.released != 1 {
			t.Errorf("with its log %t: it was given back %d times", log, store.released)
		}
		l.stop(nil)
	}
}
