package feed

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// subscriber is the place of one reader in a feed. It holds no events of its own.
type subscriber struct {
	feed   *feed
	joined int64 // the last event that the feed had told when the reader joined
	next   int64 // the number of the next item
	// whole says that no item was in progress when the reader joined: the feed tells it each piece of
	// all later items.
	whole bool
}

// subscribe returns a place behind what the feed has told so far.
func (f *feed) subscribe() *subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &subscriber{f, f.seq, f.first + int64(len(f.items)), len(f.underWay) == 0}
}

// seq is the last event that the feed has told.
func (s *subscriber) seq() int64 {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.seq
}

// advance moves a reader that has all events up to seq behind what the feed has told, if that is no
// more than these events. It returns the pieces of what the model is writing.
func (s *subscriber) advance(seq int64) (pieces []item, ok bool) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seq > seq {
		return nil, false
	}
	s.next = f.first + int64(len(f.items))
	if f.over {
		s.next--
	}
	for _, id := range slices.Sorted(maps.Keys(f.underWay)) {
		u := f.underWay[id]
		for i := range u.pieces {
			d := u.pieces[i]
			pieces = append(pieces, item{delta: &d, turn: u.turn, of: id})
		}
	}
	return pieces, true
}

// wait returns the next item, and waits for it. It is errSlow if the feed does not have it any more.
func (s *subscriber) wait(ctx context.Context) (item, error) {
	for {
		it, more, err := s.peek()
		if more == nil || err != nil {
			return it, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return item{}, context.Cause(ctx)
		}
	}
}

// peek returns the next item, or what is closed when there is one.
func (s *subscriber) peek() (it item, more <-chan struct{}, err error) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	switch at := s.next - f.first; {
	case at < 0:
		return item{}, nil, errSlow
	case at < int64(len(f.items)):
		s.next++
		return f.items[at], nil, nil
	case f.over:
		return f.items[len(f.items)-1], nil, nil
	}
	return item{}, f.more, nil
}

// idle reports whether there is nothing more to tell at this moment.
func (s *subscriber) idle() bool {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.next >= s.feed.first+int64(len(s.feed.items))
}

// Sink writes events to one client.
type Sink interface {
	// Event encodes an event; nil for an event that the client does not get.
	Event(id string, e *session.Event) ([]byte, error)
	// Delta encodes a piece of an item of a turn's output.
	Delta(turn run.ID, item string, d *run.Delta) ([]byte, error)
	// Cached reports whether all sinks of this kind encode alike, so that the feed keeps what one encodes.
	Cached() bool
	// Add adds what Event or Delta returned, which Send sends.
	Add(text []byte) error
	Send() error
	// Full reports whether MaxHeld bytes wait for Send.
	Full() bool
}

// Request says what a reader reads.
type Request struct {
	After  int64  // the client has this event and those before it
	Until  run.ID // the turn after which it ends; "" for none
	Deltas bool   // pieces of items, too
}

// Reader reads the events of a session or thread for one client: those on record up to what the feed
// has told, and what the feed tells from there.
type Reader struct {
	*subscriber
	of     source
	id     session.ID
	out    Sink
	after  int64
	until  run.ID
	deltas bool
	parts  map[string]bool // items that the client has pieces of, and not the event
	over   bool
}

// Read writes events to a sink until the stream ends: with ErrOver, with session.ErrNotFound if the
// session was deleted, or nil after the turn that the request names.
func (r *Reader) Read(ctx context.Context, q Request, out Sink) error {
	r.after, r.until, r.deltas, r.out = q.After, q.Until, q.Deltas, out
	return r.read(ctx)
}

// Close leaves the feed.
func (r *Reader) Close() { r.feed.h.leave(r.subscriber) }

// read sends until the stream ends.
func (r *Reader) read(ctx context.Context) error {
	// A client that has an event of a turn also gets the pieces of the items that the model writes then.
	select {
	case <-r.feed.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := r.catchUp(ctx, r.whole); err != nil || r.over {
		return err
	}
	for {
		it, err := r.wait(ctx)
		if errors.Is(err, errSlow) { // some events may be larger than all that a feed keeps
			before := r.next
			if err := r.catchUp(ctx, false); err != nil || r.over {
				return err
			}
			if r.next > before {
				continue
			}
		}
		if err != nil {
			return err
		}
		switch {
		case it.end != nil:
			return it.end
		case it.event != nil:
			err = r.event(it.event, it.frames)
		default:
			err = r.delta(&it)
		}
		if err == nil && (r.over || r.idle() || r.out.Full()) {
			err = r.out.Send()
		}
		if err != nil || r.over {
			return err
		}
	}
}

// catchUp sends the recorded events before the reader's place in the feed. Unless joined is set, that
// place moves to the feed's end.
func (r *Reader) catchUp(ctx context.Context, joined bool) error {
	for limit := firstPage; ; {
		upTo := r.seq()
		if joined {
			upTo = r.joined
		}
		for r.after < upTo {
			page, err := r.of.after(ctx, r.after, limit)
			if err != nil {
				return err
			}
			size := 1
			if len(page) > 0 && page[0].Seq > upTo {
				r.after = upTo
			}
			for i := range page {
				if page[i].Seq > upTo { // the feed tells it, after its pieces
					break
				}
				size += sizeOf(&page[i])
				if err := r.event(&page[i], nil); err != nil {
					return err
				}
				if r.over {
					break
				}
				page[i] = session.Event{}
			}
			if err := r.out.Send(); err != nil || r.over || len(page) == 0 {
				return err
			}
			// A slow client holds a page: read as many events as are small.
			limit = min(max(1, MaxHeld*len(page)/size), readPage)
		}
		if joined {
			return nil
		}
		if len(r.parts) > 0 { // the pieces in between are on no record
			return errSlow
		}
		pieces, ok := r.advance(r.after)
		if !ok {
			continue
		}
		for i := range pieces {
			if err := r.delta(&pieces[i]); err != nil {
				return err
			}
		}
		return r.out.Send()
	}
}

// event adds an event, unless the client has it. Cached sinks share its frame.
func (r *Reader) event(e *session.Event, shared *frameCache) error {
	if e.Seq <= r.after {
		return nil
	}
	err := r.put(shared, func() ([]byte, error) { return r.out.Event(session.EventID(r.id, e.Seq), e) })
	if err != nil {
		return err
	}
	r.after = e.Seq
	if delete(r.parts, e.Shown); e.Status != nil && !e.Status.Running {
		clear(r.parts) // the turn ended without them
	}
	r.over = r.until != "" && e.Run == r.until && e.Status != nil && !e.Status.Running
	return nil
}

func (r *Reader) delta(it *item) error {
	if !r.deltas {
		return nil
	}
	if r.parts == nil {
		r.parts = map[string]bool{}
	}
	r.parts[it.of] = true
	return r.put(it.frames, func() ([]byte, error) { return r.out.Delta(it.turn, it.of, it.delta) })
}

// frameCache is what cached sinks encode an item as, which is the same for all.
type frameCache struct {
	once sync.Once
	text []byte
	err  error
}

// put adds what make returns, which is made once for all cached sinks.
func (r *Reader) put(shared *frameCache, make func() ([]byte, error)) error {
	if shared == nil || !r.out.Cached() {
		text, err := make()
		if err != nil {
			return err
		}
		return r.out.Add(text)
	}
	shared.once.Do(func() {
		shared.text, shared.err = make()
		r.feed.weigh(shared)
	})
	if shared.err != nil {
		return shared.err
	}
	return r.out.Add(shared.text)
}
