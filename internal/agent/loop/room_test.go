package loop

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// TestRoom: a run that began while there was room ends, with the reason, before the first
// call for which there is none.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason run.Reason
		says   string
	}{
		"outputs": {fault.New(fault.Exhausted, "the plan keeps no more"), run.QuotaExceeded, "the plan keeps no more"},
		"disk":    {fault.Wrap(fault.Unavailable, errors.New("3 bytes free"), "low on disk space"), run.ServerError, "low on disk space"},
	} {
		t.Run(name, func(t *testing.T) {
			k, asked := newKit(t, models{"m": script(adds)}), 0
			l := New(Config{
				Store: k.store, Models: k.models, Handlers: map[string]Handler{"add": k.adder}, Events: k.bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "a", Prices: prices,
				Room: func(context.Context, *run.Run) error {
					if asked++; asked == 1 {
						return nil
					}
					return c.err
				},
			})
			if err := l.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Stop)
			id, done := k.begin(t, l, request("1 2 3"))
			<-done
			s := k.state(t, id)
			if s.End == nil || s.End.Status != run.Failed || s.End.Reason != c.reason || s.End.Message != c.says {
				t.Fatalf("got %+v", s.End)
			}
			if made := len(k.adder.calls); made != 1 {
				t.Errorf("%d calls were made", made)
			}
			k.charged(t, s, 2, 1, 1)
		})
	}
}
