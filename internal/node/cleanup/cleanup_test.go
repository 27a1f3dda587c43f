package cleanup

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestFailedStepsAreCountedAndRetried(t *testing.T) {
	reg := prometheus.NewRegistry()
	q, err := New(slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.first = time.Millisecond
	tries, done := 0, make(chan struct{})
	ok := q.Try(t.Context(), Sandbox, "sb-1", func(context.Context) error {
		if tries++; tries < 4 {
			return errors.New("still busy")
		}
		close(done)
		return nil
	})
	if ok {
		t.Error("a failed step was reported as done")
	}
	<-done
	if got := testutil.ToFloat64(q.failures.WithLabelValues(string(Sandbox))); got != 3 {
		t.Errorf("%v failures are counted, want 3", got)
	}
	other, err := New(slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatalf("a second queue of the registry: %v", err)
	}
	other.Close()
}

func TestCloseStopsARetry(t *testing.T) {
	q, err := New(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.first = 0
	begun := make(chan struct{})
	q.Later(Home, "h", errors.New("busy"), func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	<-begun
	q.Close()
	if got := testutil.ToFloat64(q.pending); got != 0 {
		t.Errorf("%v items are pending after Close", got)
	}
}

func TestFailuresDoNotHoldUpAStartForLong(t *testing.T) {
	q, err := New(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.first = time.Hour
	q.spent = patience + 1
	if q.Try(t.Context(), Mount, "m", func(context.Context) error { t.Error("tried"); return nil }) {
		t.Error("a step that was put off was reported as done")
	}
	if got := testutil.ToFloat64(q.pending); got != 1 {
		t.Errorf("%v items are pending, want 1", got)
	}
}
