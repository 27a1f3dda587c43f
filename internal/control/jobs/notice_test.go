package jobs

import (
	"context"
	"errors"
	"testing"
)

// TestNotices: what is stored of a session is sent until it is taken, as often as a webhook is.
func TestNotices(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *engine) {
		attempts, ended := make(chan string, 20), make(chan string, 20)
		c := e.start(t, Config{
			Tell: func(_ context.Context, of, id string, sealed []byte) (bool, error) {
				attempts <- of + " " + id + " " + string(sealed)
				switch {
				case id == "evt_late" && len(attempts) < 3, id == "evt_never":
					return true, errors.New("the receiver answered 500")
				}
				return true, nil
			},
			Observe: func(outcome string) {
				if outcome != retried {
					ended <- outcome
				}
			},
		})
		for _, test := range []struct {
			id       string
			attempts int
			outcome  string
		}{{"evt_1", 1, "delivered"}, {"evt_late", 3, "delivered"}, {"evt_never", 4, "failed"}} {
			tx, err := e.db.SQL().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Notify(t.Context(), tx, tenant, test.id, []byte("sealed")); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			c.Poke()
			if got := <-ended; got != test.outcome || len(attempts) != test.attempts {
				t.Errorf("%s: %s after %d attempts", test.id, got, len(attempts))
			}
			for len(attempts) > 0 {
				if got := <-attempts; got != tenant+" "+test.id+" sealed" {
					t.Errorf("sent %s", got)
				}
			}
		}
	})
}
