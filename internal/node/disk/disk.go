// Package disk watches the file system that the data folder is on, so that new
// work is refused before what is under way fails for want of space.
package disk

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Config of a Guard.
type Config struct {
	Dir   string
	Bytes int64 // that must be free; 0 for any number
}

// Usage is the state of a file system, for those without privileges.
type Usage struct{ Free, Size int64 }

// Guard says whether there is room for new work.
type Guard struct {
	cfg Config

	mu   sync.Mutex
	at   time.Time
	last Usage
	err  error
}

// fresh is how long what was seen holds.
const fresh = time.Second

// New returns a Guard.
func New(cfg Config) *Guard { return &Guard{cfg: cfg} }

// Usage is the state of the file system, at most a second old.
func (g *Guard) Usage() (Usage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at.IsZero() || time.Since(g.at) >= fresh {
		var st unix.Statfs_t
		g.at, g.last, g.err = time.Now(), Usage{}, nil
		if err := unix.Statfs(g.cfg.Dir, &st); err != nil {
			g.err = fmt.Errorf("look at the file system of %s: %w", g.cfg.Dir, err)
		} else {
			g.last = Usage{Free: int64(st.Bavail) * st.Bsize, Size: int64(st.Blocks) * st.Bsize}
		}
	}
	return g.last, g.err
}

// Admit returns an Unavailable fault when there is too little room for new
// work, also when that cannot be told.
func (g *Guard) Admit() error { return g.AdmitBytes(0) }

// AdmitBytes is Admit for work that takes so many bytes.
func (g *Guard) AdmitBytes(bytes int64) error {
	u, err := g.Usage()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server cannot tell how much disk space is free; nothing was run")
	}
	if u.Free-bytes < g.cfg.Bytes {
		return fault.Wrap(fault.Unavailable,
			fmt.Errorf("%s has %s free of %s, and %s must stay free", g.cfg.Dir, round(u.Free), round(u.Size), round(g.cfg.Bytes)),
			"the server is low on disk space; retry later")
	}
	return nil
}

// round writes a size as whole MiB, or whole GiB for 10 GiB and more.
func round(n int64) string {
	const MiB = 1 << 20
	if n >= 10*MiB {
		n -= n % MiB
	}
	if n >= 10<<30 {
		n -= n % (1 << 30)
	}
	return runtime.FormatBytes(n)
}
