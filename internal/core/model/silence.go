package model

import (
	"sync"
	"time"
)

// silence notices when nothing comes for a while. Its timer is not moved with each delta,
// which would cost as much as all else that is done with one.
type silence struct {
	most time.Duration
	over func()

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu; nil before the first
	armed   bool        // guarded by mu: the timer runs
	waiting bool        // guarded by mu
	since   time.Time   // guarded by mu: when the wait began
}

// begin says that something is waited for.
func (s *silence) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.since = true, time.Now()
	switch {
	case s.armed:
	case s.timer == nil:
		s.timer = time.AfterFunc(s.most, s.look)
	default:
		s.timer.Reset(s.most)
	}
	s.armed = true
}

// end says that it has come.
func (s *silence) end() {
	s.mu.Lock()
	s.waiting = false
	s.mu.Unlock()
}

// stop ends it all.
func (s *silence) stop() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *silence) look() {
	s.mu.Lock()
	left := s.most - time.Since(s.since)
	over := s.waiting && left <= 0
	if s.armed = s.waiting && left > 0; s.armed {
		s.timer.Reset(left)
	}
	s.mu.Unlock()
	if over {
		s.over()
	}
}
