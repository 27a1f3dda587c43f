package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// patience is the longest that anything here may take.
const patience = 20 * time.Second

func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// TestDelivered: a webhook leaves by its ring, as no poll comes.
func TestDelivered(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *engine) {
		arrived, outcome := make(chan string, 1), make(chan string, 1)
		c := e.start(t, Config{
			poll: time.Hour,
			Deliver: func(_ context.Context, x *execution.Execution) (bool, error) {
				arrived <- x.TraceID
				return true, nil
			},
			Observe: func(s string) { outcome <- s },
		})
		for i := range 20 {
			id := fmt.Sprintf("trc_%d", i)
			if err := e.conclude(t.Context(), c, id, "https://x"); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, arrived, "delivery"); got != id {
				t.Errorf("%s left, not %s", got, id)
			}
			if s := wait(t, outcome, "outcome"); s != "delivered" || e.status(t, id) != execution.WebhookDelivered {
				t.Errorf("%s, recorded as %s", s, e.status(t, id))
			}
		}
	})
}

// What is rolled back has no job.
func TestRolledBack(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		arrived := make(chan string, 2)
		c := e.start(t, Config{Deliver: func(_ context.Context, x *execution.Execution) (bool, error) {
			arrived <- x.TraceID
			return true, nil
		}})
		tx, err := e.db.SQL().Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Enqueue(t.Context(), tx, &execution.Execution{TraceID: "trc_never", Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		tx.Rollback()
		c.Poke()
		if err := e.conclude(t.Context(), c, "trc_then", "https://x"); err != nil {
			t.Fatal(err)
		}
		if id := wait(t, arrived, "delivery"); id != "trc_then" {
			t.Errorf("got %s", id)
		}
	})
}

// The waits are above the quarter of a second that River may take to store what
// became of a job, and below River's own for all but the first. A busy machine adds to them.
func TestRetries(t *testing.T) {
	t.Parallel()
	retries := []time.Duration{350 * time.Millisecond, 500 * time.Millisecond, 1200 * time.Millisecond}
	engines(t, func(t *testing.T, e *engine) {
		for _, failing := range []int{2, 3, 4} {
			t.Run(fmt.Sprint(failing), func(t *testing.T) {
				var attempts []time.Time
				outcome, read := make(chan string, 10), make(chan struct{}, 10)
				c := e.start(t, Config{
					Retries: retries,
					Deliver: func(ctx context.Context, _ *execution.Execution) (bool, error) {
						attempts = append(attempts, time.Now())
						if len(attempts) > 1 {
							select {
							case <-read: // the record, as the attempt before left it
							case <-ctx.Done():
							}
						}
						if len(attempts) <= failing {
							return true, errors.New("the receiver answered 500")
						}
						return true, nil
					},
					Observe: func(s string) { outcome <- s },
				})
				id := fmt.Sprintf("trc_%d", failing)
				if err := e.conclude(t.Context(), c, id, "https://x"); err != nil {
					t.Fatal(err)
				}
				want := execution.WebhookDelivered
				for i := range min(failing, 3) {
					if s := wait(t, outcome, "outcome"); s != "retried" || e.status(t, id) != execution.WebhookPending {
						t.Fatalf("attempt %d: %s, recorded as %s", i+1, s, e.status(t, id))
					}
					read <- struct{}{}
				}
				if failing > 3 {
					want = execution.WebhookFailed
				}
				if s := wait(t, outcome, "outcome"); s != string(want) || e.status(t, id) != want {
					t.Errorf("%s, recorded as %s, want %s", s, e.status(t, id), want)
				}
				if len(attempts) != min(failing+1, 4) {
					t.Errorf("%d attempts", len(attempts))
				}
				for i, at := range attempts[1:] {
					if d := at.Sub(attempts[i]); d < retries[i] || d > retries[i]+10*time.Second {
						t.Errorf("attempt %d came %s after the one before, want %s", i+2, d, retries[i])
					}
				}
			})
		}
	})
}

// Failures of our own are tried again without counting, and a job whose record
// is gone ends.
func TestOwnFailures(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *engine) {
		n := 0
		outcome := make(chan string, 10)
		c := e.start(t, Config{
			Retries: []time.Duration{},
			Deliver: func(context.Context, *execution.Execution) (bool, error) {
				if n++; n <= 2 {
					return false, errors.New("the blob store is away")
				}
				return true, nil
			},
			Observe: func(s string) { outcome <- s },
		})
		tx, err := e.db.SQL().Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Enqueue(t.Context(), tx, &execution.Execution{TraceID: "trc_gone", Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := e.conclude(t.Context(), c, "trc_1", "https://x"); err != nil {
			t.Fatal(err)
		}
		if s := wait(t, outcome, "outcome"); s != "delivered" || n != 3 {
			t.Errorf("%s after %d attempts", s, n)
		}
	})
}

func TestRedeliver(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		arrived, outcome := make(chan execution.WebhookStatus, 9), make(chan string, 9)
		fail := true
		c := e.start(t, Config{
			Retries: []time.Duration{},
			Deliver: func(_ context.Context, x *execution.Execution) (bool, error) {
				arrived <- e.status(t, x.TraceID)
				if err := e.client.Load().Redeliver(t.Context(), x); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "in progress") {
					t.Errorf("while it is delivered: %v", err)
				}
				if fail {
					return true, errors.New("no")
				}
				return true, nil
			},
			Observe: func(s string) { outcome <- s },
		})
		if err := e.conclude(t.Context(), c, "trc_1", "https://x"); err != nil {
			t.Fatal(err)
		}
		if s := wait(t, outcome, "outcome"); s != "failed" {
			t.Fatal(s)
		}
		fail = false
		for range 2 {
			if err := c.Redeliver(t.Context(), e.get(t, "trc_1")); err != nil {
				t.Fatal(err)
			}
			if s := wait(t, outcome, "outcome"); s != "delivered" || e.status(t, "trc_1") != execution.WebhookDelivered {
				t.Errorf("%s, recorded as %s", s, e.status(t, "trc_1"))
			}
		}
		for range 3 {
			if s := wait(t, arrived, "arrival"); s != execution.WebhookPending {
				t.Errorf("%s while it is delivered", s)
			}
		}
		for _, x := range []*execution.Execution{{Status: execution.Success}, {Status: execution.Running, Webhook: execution.WebhookTarget{URL: "https://x"}}} {
			if err := c.Redeliver(t.Context(), x); fault.KindOf(err) != fault.Conflict {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A stop cuts an attempt short when it may not wait, and the next start makes it
// again.
func TestStop(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *engine) {
		begun, ended := make(chan struct{}, 1), make(chan error, 1)
		c, err := New(e.config(Config{Deliver: func(ctx context.Context, _ *execution.Execution) (bool, error) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return false, ctx.Err()
		}}))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.conclude(t.Context(), c, "trc_1", "https://x"); err != nil {
			t.Fatal(err)
		}
		wait(t, begun, "attempt")
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.Stop(short); err != nil {
			t.Fatal(err)
		}
		if len(ended) != 1 {
			t.Error("Stop did not wait for the attempt")
		}
		if s := e.status(t, "trc_1"); s != execution.WebhookPending {
			t.Errorf("recorded as %s", s)
		}

		outcome := make(chan string, 1)
		e.start(t, Config{
			Deliver: func(context.Context, *execution.Execution) (bool, error) { return true, nil },
			Observe: func(s string) { outcome <- s },
		})
		if s := wait(t, outcome, "outcome"); s != "delivered" {
			t.Error(s)
		}
	})
}

func TestPeriodic(t *testing.T) {
	engines(t, func(t *testing.T, e *engine) {
		t.Parallel()
		ran := make(chan string, 10)
		block := make(chan struct{})
		began := time.Now()
		e.start(t, Config{Periodic: []Periodic{
			{Name: "seal", Every: time.Hour, Timeout: 7 * time.Second, Run: func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				if left := time.Until(deadline); deadline.Before(began.Add(7*time.Second)) || left > 7*time.Second {
					t.Errorf("%s left", left)
				}
				ran <- "seal"
				return errors.New("a failure that is logged")
			}},
			{Name: "purge", Every: time.Second, Run: func(ctx context.Context) error {
				ran <- "purge"
				select {
				case <-block:
				case <-ctx.Done():
				}
				return nil
			}},
		}})
		got := map[string]int{}
		for range 2 {
			got[wait(t, ran, "periodic work")]++
		}
		if got["seal"] != 1 || got["purge"] != 1 {
			t.Errorf("got %v", got)
		}
		close(block)
		if s := wait(t, ran, "second turn"); s != "purge" {
			t.Error(s)
		}
	})
}
