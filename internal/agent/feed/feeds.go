// Package feed follows the events of sessions and threads for many readers.
//
// However many readers follow a session, one feed of this process reads it.
package feed

import (
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

const (
	readPage  = 100 // events that are read at a time, at most
	firstPage = 8   // events that a reader reads before it knows how large they are
	// MaxHeld is about how many bytes are held for a client that does not read.
	MaxHeld = 64 << 10
)

// Feeds has the feeds of this process.
type Feeds struct {
	Service *conversation.Service
	// News says when a session has changed; nil where no other process changes any, and sessions are
	// looked at every second.
	News run.News

	hub hub
}

// Session joins the readers of a session. Each piece of a turn that starts later reaches the reader.
func (h *Feeds) Session(s *session.Session) (*Reader, error) {
	return h.reader(s.ID, ofSession{h.Service.Store, s}, place{s.Tenant, s.ID, s.Events})
}

// Thread joins the readers of a thread. They read until the thread has ended.
func (h *Feeds) Thread(t *session.Thread) (*Reader, error) {
	return h.reader(t.Session, ofThread{h.Service.Store, t}, place{t.Tenant, session.ID(t.ID), t.Events})
}

func (h *Feeds) reader(within session.ID, of source, at place) (*Reader, error) {
	s, err := h.join(within, of, at)
	if err != nil {
		return nil, err
	}
	return &Reader{subscriber: s, of: of, id: at.id}, nil
}
