package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// counted is a task that writes nothing but how often it was done.
type counted struct{ done *int }

func (counted) locks() []int64 { return nil }
func (counted) order() string  { return "" }
func (c counted) do(context.Context, *batch) error {
	*c.done++
	return nil
}

// TestFullQueueOfTheGone fills SQLite's queue with tasks whose callers have gone, when no caller
// writes: the next one finds room, and nothing of the others is done.
func TestFullQueueOfTheGone(t *testing.T) {
	db := openWithCalls(t, filepath.Join(t.TempDir(), "atoll.db"), nil)
	t.Cleanup(func() { _ = db.Close() })
	gone, leave := context.WithCancel(t.Context())
	leave()
	theirs, ours := 0, 0
	for range maxQueued {
		p := &pending{task: counted{&theirs}, ctx: gone, done: make(chan error, 1)}
		p.taken.Store(true) // by its caller, who gave up
		db.writer.queue <- p
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := db.writer.write(ctx, counted{&ours}); err != nil || ours != 1 || theirs != 0 {
		t.Errorf("%v; %d of ours and %d of theirs were done", err, ours, theirs)
	}
}
