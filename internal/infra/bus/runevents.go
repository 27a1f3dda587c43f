package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// runEvent is the stream of a run's events in a log.
const runEvent execution.Stream = "run"

// closeTime bounds the wait for the last events of a run to be stored.
const closeTime = 30 * time.Second

// RunEvents are the events of runs, each run's in a log of its own, encrypted with the key of its
// tenant.
type RunEvents struct {
	log  *Log
	seal Sealer

	mu   sync.Mutex
	last map[run.ID]int64 // seq of the last event, of the runs that this process drives
}

var (
	_ run.Publisher = (*RunEvents)(nil)
	_ run.Reader    = (*RunEvents)(nil)
)

// Sealer encrypts for a tenant and a place; what it made opens for these alone.
type Sealer interface {
	SealFor(tenant string, plain []byte, place string) []byte
	OpenFor(tenant string, sealed []byte, place string) ([]byte, error)
}

// RunEvents returns the events of runs, encrypted by seal. A process makes it once.
func (b *Bus) RunEvents(seal Sealer) *RunEvents {
	return &RunEvents{log: b.log, seal: seal, last: map[run.ID]int64{}}
}

// Publish implements run.Publisher.
func (r *RunEvents) Publish(ctx context.Context, of *run.Run, events []run.Event) error {
	id := of.ID
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	last, ok := r.last[id]
	if !ok {
		last = 1 // a log begins with 2
		r.log.b.tenants.Store(string(id), of.Tenant)
	}
	r.last[id] = last + int64(len(events))
	r.mu.Unlock()
	size := 0
	var batch []execution.Event
	for i := range events {
		seq := last + int64(i) + 1
		data, err := r.encode(of, seq, events[i])
		if err != nil {
			return fmt.Errorf("bus: an event of run %s: %w", id, err)
		}
		if size += len(data); size > execution.MaxChunk && len(batch) > 0 {
			if err := r.log.Append(string(id), batch); err != nil {
				return err
			}
			batch, size = nil, len(data)
		}
		batch = append(batch, execution.Event{Seq: seq, Stream: runEvent, Data: data})
	}
	return r.log.Append(string(id), batch)
}

// Published implements run.Publisher.
func (r *RunEvents) Published(ctx context.Context, of *run.Run) (*run.Published, error) {
	id := of.ID
	p := &run.Published{}
	last, place := int64(1), uint64(1)
	for {
		records, err := r.log.read(ctx, string(id), place)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			break
		}
		for _, rec := range records {
			place = rec.place + 1
			for _, e := range rec.entry.events {
				if e.Seq <= last {
					continue // it was stored twice
				}
				if e.Seq != last+1 {
					return nil, run.ErrNoEvents
				}
				last = e.Seq
				event, err := r.decode(of.Tenant, id, e)
				if err != nil {
					return nil, err
				}
				if !p.Apply(&event) {
					return nil, fmt.Errorf("bus: event %d of run %s cannot follow those before it", e.Seq, id)
				}
			}
		}
	}
	r.mu.Lock()
	r.last[id] = last
	r.mu.Unlock()
	r.log.b.tenants.Store(string(id), of.Tenant)
	return p, nil
}

// Close implements run.Publisher.
func (r *RunEvents) Close(id run.ID) {
	r.mu.Lock()
	delete(r.last, id)
	r.mu.Unlock()
	r.log.b.tenants.Delete(string(id))
	r.log.senders.Go(func() {
		ctx, cancel := context.WithTimeout(r.log.b.closed, closeTime)
		defer cancel()
		r.log.drop(ctx, string(id))
	})
}

// Delete implements run.Publisher. It does not overwrite the events, because they are encrypted and
// a run has hundreds of them.
func (r *RunEvents) Delete(ctx context.Context, id run.ID) error {
	return r.log.purge(ctx, string(id))
}

// sent waits until all is stored that this process has appended to a log, and returns the log's pipe.
func (l *Log) sent(ctx context.Context, id string) *pipe {
	p := l.written(id)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.sending && p.wait(ctx) {
	}
	return p
}

// drop forgets the pipe of a log once all of it is stored.
func (l *Log) drop(ctx context.Context, id string) {
	p := l.sent(ctx, id)
	if p == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pipes[id] == p {
		delete(l.pipes, id)
	}
}

// Follow implements run.Reader.
func (r *RunEvents) Follow(ctx context.Context, t tenant.ID, id run.ID, yield func([]run.Event) error) error {
	next := int64(2)
	_, err := r.log.followLog(ctx, string(id), 0, true, func(stored []execution.Event) error {
		events := make([]run.Event, 0, len(stored))
		for _, e := range stored {
			if e.Seq != next {
				return run.ErrNoEvents
			}
			next++
			event, err := r.decode(t, id, e)
			if err != nil {
				return err
			}
			events = append(events, event)
		}
		if err := r.log.settled(ctx, string(id), next-1); err != nil {
			return err
		}
		return yield(events)
	})
	return err
}

// Stored implements run.Reader.
func (r *RunEvents) Stored(ctx context.Context, id run.ID) (int64, error) {
	r.log.sent(ctx, string(id))
	last, err := r.log.Last(ctx, string(id))
	return last - 1, err // a log begins with 2
}

func eventPlace(id run.ID, seq int64) string {
	return "run_events/" + string(id) + "/" + strconv.FormatInt(seq, 10)
}

// maxSealing is more than encryption adds to an event.
const maxSealing = 64

// encode leaves out an item that is too large for a log: the run's record has it.
func (r *RunEvents) encode(of *run.Run, seq int64, e run.Event) ([]byte, error) {
	data, err := marshalEvent(&e)
	if err != nil {
		return nil, err
	}
	if len(data) > execution.MaxChunk-maxSealing {
		if data, err = json.Marshal(short(e)); err != nil {
			return nil, err
		}
	}
	return r.seal.SealFor(of.Tenant, data, eventPlace(of.ID, seq)), nil
}

// short is an event without its item.
func short(e run.Event) *run.Event {
	of := func(it *run.ItemEvent) *run.ItemEvent {
		if it == nil {
			return nil
		}
		return &run.ItemEvent{Index: it.Index, Item: run.Item{ID: it.Item.ID, Status: it.Item.Status}, Recorded: true}
	}
	e.Began, e.Called, e.Done = of(e.Began), of(e.Called), of(e.Done)
	return &e
}

func (r *RunEvents) decode(t tenant.ID, id run.ID, stored execution.Event) (e run.Event, err error) {
	data, err := r.seal.OpenFor(t, stored.Data, eventPlace(id, stored.Seq))
	if err == nil {
		err = unmarshalEvent(data, &e)
	}
	if err != nil {
		return e, fmt.Errorf("bus: event %d of run %s: %w", stored.Seq, id, err)
	}
	return e, nil
}
