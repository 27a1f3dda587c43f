package feed

import (
	"context"
	"sync"

	"github.com/atoll-run/atoll/internal/core/session"
)

// hub has the feeds of this process: one for each session or thread that is followed, however
// many clients follow it.
type hub struct {
	mu    sync.Mutex
	feeds map[session.ID]*feed // guarded by mu; by session, or by a thread's own id
}

// join adds a reader to the feed of a source, and makes the feed if it is the first. The reader
// gets what comes after this moment; see Reader.catchUp for what comes before.
func (h *Feeds) join(within session.ID, of source, at place) (*subscriber, error) {
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	f := h.hub.feeds[at.id]
	if f == nil || f.ended() {
		f = &feed{h: h, of: of, at: at, seq: at.known, news: make(chan struct{}, 1), more: make(chan struct{}), ready: make(chan struct{})}
		ctx, cancel := context.WithCancel(context.Background())
		f.cancel = cancel
		if h.News != nil {
			stop, err := h.News.Watch(string(within), f.wake)
			if err != nil {
				cancel()
				return nil, err
			}
			context.AfterFunc(ctx, stop)
		}
		if h.hub.feeds == nil {
			h.hub.feeds = map[session.ID]*feed{}
		}
		h.hub.feeds[at.id] = f
		go f.run(ctx)
	}
	f.readers++
	f.reading.Store(int64(f.readers))
	return f.subscribe(), nil
}

// leave removes a reader. A feed ends with its last one.
func (h *Feeds) leave(s *subscriber) {
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	f := s.feed
	f.readers--
	if f.reading.Store(int64(f.readers)); f.readers > 0 {
		return
	}
	f.cancel()
	if h.hub.feeds[f.at.id] == f {
		delete(h.hub.feeds, f.at.id)
	}
}
