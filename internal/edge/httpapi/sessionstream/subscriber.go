package sessionstream

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

// reader sends the events of a session or thread to one client: those on record up to what the feed
// has told, and what the feed tells from there.
type reader struct {
	*subscriber
	of     source
	id     session.ID
	out    *sse
	form   Form
	after  int64  // the client has this event and those before it
	until  run.ID // the turn after which it ends; "" for none
	deltas bool
	parts  map[string]bool // items that the client has pieces of, and not the event
	over   bool
}

// read sends until the stream ends.
func (r *reader) read(ctx context.Context) error {
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
		if err == nil && (r.over || r.idle() || r.out.full()) {
			err = r.out.send()
		}
		if err != nil || r.over {
			return err
		}
	}
}

// catchUp sends the recorded events before the reader's place in the feed. Unless joined is set, that
// place moves to the feed's end.
func (r *reader) catchUp(ctx context.Context, joined bool) error {
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
			if err := r.out.send(); err != nil || r.over || len(page) == 0 {
				return err
			}
			// A slow client holds a page: read as many events as are small.
			limit = min(max(1, maxHeld*len(page)/size), readPage)
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
		return r.out.send()
	}
}

// event adds an event, unless the client has it. Readers of a cached form share its frame.
func (r *reader) event(e *session.Event, shared *frameCache) error {
	if e.Seq <= r.after {
		return nil
	}
	err := r.put(shared, func() ([]byte, error) {
		if f := r.form.Event(e); f.Kind != "" {
			return frame(session.EventID(r.id, e.Seq), f)
		}
		return nil, nil
	})
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

func (r *reader) delta(it *item) error {
	if !r.deltas {
		return nil
	}
	if r.parts == nil {
		r.parts = map[string]bool{}
	}
	r.parts[it.of] = true
	return r.put(it.frames, func() (text []byte, err error) {
		for _, f := range r.form.Delta(it.turn, it.of, it.delta) {
			one, err := frame("", f)
			if err != nil {
				return nil, err
			}
			text = append(text, one...)
		}
		return text, nil
	})
}

// frameCache is what readers of a cached form are sent for an item, which is the same for all.
type frameCache struct {
	once sync.Once
	text []byte
	err  error
}

// put adds what make returns, which is made once for all readers of a cached form.
func (r *reader) put(shared *frameCache, make func() ([]byte, error)) error {
	if shared == nil || !r.form.Cached() {
		text, err := make()
		if err != nil {
			return err
		}
		return r.out.add(text)
	}
	shared.once.Do(func() {
		shared.text, shared.err = make()
		r.feed.weigh(shared)
	})
	if shared.err != nil {
		return shared.err
	}
	return r.out.add(shared.text)
}

// last ends the stream of a session that is archived or deleted, or of a thread.
func (r *reader) last(deleted bool) error {
	if f := r.form.Over(deleted); f.Kind != "" {
		text, err := frame("", f)
		if err == nil {
			err = r.out.add(text)
		}
		if err != nil {
			return err
		}
	}
	return r.out.send()
}
