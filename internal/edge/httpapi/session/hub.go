package session

import (
	"sync"

	"github.com/atoll-run/atoll/internal/core/session"
)

// hub wakes readers when something begins in a session. What begins in another process they
// find by looking.
type hub struct {
	mu      sync.Mutex
	waiting map[session.ID]*waiting // guarded by mu
}

// waiting are the readers of a session.
type waiting struct {
	readers int
	next    chan struct{} // closed by wake
}

// join adds a reader. news returns what is closed when something begins after that.
func (h *hub) join(id session.ID) (news func() <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiting[id]
	if w == nil {
		if h.waiting == nil {
			h.waiting = map[session.ID]*waiting{}
		}
		w = &waiting{next: make(chan struct{})}
		h.waiting[id] = w
	}
	w.readers++
	news = func() <-chan struct{} {
		h.mu.Lock()
		defer h.mu.Unlock()
		return w.next
	}
	leave = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if w.readers--; w.readers == 0 {
			delete(h.waiting, id)
		}
	}
	return news, leave
}

func (h *hub) wake(id session.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[id]; w != nil {
		close(w.next)
		w.next = make(chan struct{})
	}
}
