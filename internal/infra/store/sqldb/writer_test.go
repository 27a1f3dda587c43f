package sqldb

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/test/atolltest"
)

func testBox(t testing.TB) *seal.Box {
	t.Helper()
	b, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openSQLiteFile(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "atoll.db"), Seal: testBox(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// counted is a task that writes nothing but how often it was done.
type counted struct{ done *int }

func (counted) Locks() []int64 { return nil }
func (counted) Order() string  { return "" }
func (c counted) Do(context.Context, *Batch) error {
	*c.done++
	return nil
}

// TestFullQueueOfTheGone fills SQLite's queue with tasks whose callers have gone, when no caller
// writes: the next one finds room, and nothing of the others is done.
func TestFullQueueOfTheGone(t *testing.T) {
	db := openSQLiteFile(t)
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

// ownedTask is a counted task of a tenant.
type ownedTask struct {
	counted
	of string
}

func (t ownedTask) Owner() string { return t.of }

// TestNeighborIsInTheNextBatch: a tenant with many callers has half of a batch in the queue, and a
// neighbor's task comes right behind.
func TestNeighborIsInTheNextBatch(t *testing.T) {
	db := openSQLiteFile(t)
	w := db.writer
	w.turn <- struct{}{} // a long transaction
	done := 0
	var callers sync.WaitGroup
	for range 2 * maxBatch {
		callers.Go(func() {
			if err := w.write(t.Context(), ownedTask{counted{&done}, "hostile"}); err != nil {
				t.Error(err)
			}
		})
	}
	atolltest.Until(t, time.Minute, "the hostile tenant waits", func() bool { return w.places.Held("hostile") == maxBatch/2 && len(w.queue) == maxBatch/2 })
	callers.Go(func() {
		if err := w.write(t.Context(), ownedTask{counted{&done}, "neighbor"}); err != nil {
			t.Error(err)
		}
	})
	atolltest.Until(t, time.Minute, "the neighbor is in the queue", func() bool { return len(w.queue) == maxBatch/2+1 })
	<-w.turn
	callers.Wait()
	if done != 2*maxBatch+1 || w.places.Held("hostile") != 0 {
		t.Errorf("%d were done", done)
	}
}
