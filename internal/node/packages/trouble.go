package packages

import (
	"sync"
	"time"
)

// Trouble is why mirrors did not answer. Programs are shown a status alone, so who installs
// packages asks here. A nil Trouble keeps nothing.
type Trouble struct {
	mu  sync.Mutex
	why string    // guarded by mu; the last reason
	at  time.Time // guarded by mu
}

func (t *Trouble) note(why string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why, t.at = why, time.Now()
}

// Since is the last reason since a time; "" for none.
func (t *Trouble) Since(when time.Time) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.Before(when) {
		return ""
	}
	return t.why
}
