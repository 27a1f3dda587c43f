package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/disk"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// homeError is why a program is ended that fills its home or the disk.
type homeError struct{ reason string }

func (e *homeError) Error() string { return e.reason }

// How a home is watched while its program runs. The file system's own figures cost
// next to nothing; the home is measured when these say that it may have grown by
// half of what is left to it, and now and then all the same, since somebody else
// may have freed as much.
const (
	homeTick    = 250 * time.Millisecond
	homeMeasure = 10 * time.Second
	homeShare   = 10 // measuring takes at most one part in so many of the time
)

// watchHome ends the program when its home outgrows the thread's quota, or when
// the disk is about to be full. Both are noticed late: a program may write for
// homeTick and as long as the measuring takes before it is stopped.
func (t *task) watchHome() (stop func()) {
	if t.job.Thread == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.ctx)
	w := &homeWatch{dir: t.x.cfg.Sandboxes.HomePath(t.sandbox.Folder()), quota: t.job.Thread.Quota, keep: t.x.cfg.HomeFree}
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(homeTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if err := w.look(ctx, now); err != nil {
					t.cancel(err)
					return
				}
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// homeWatch is what is known of a home on disk.
type homeWatch struct {
	dir   string
	quota int64 // 0 for none
	keep  int64 // bytes of the disk that stay free

	used int64     // when it was measured last
	free int64     // of the file system, then
	next time.Time // no measuring before
	last time.Time // of measuring
}

// look returns why the program must end. What cannot be measured is left to who
// saves the home.
func (w *homeWatch) look(ctx context.Context, now time.Time) error {
	var st unix.Statfs_t
	if err := unix.Statfs(w.dir, &st); err != nil {
		return nil //nolint:nilerr // the home is gone, and so is the program
	}
	free := int64(st.Bavail) * st.Bsize
	if free < w.keep {
		return &homeError{"the server is short of disk space; the program was ended, and its thread is as it was before"}
	}
	if st.Files > 0 && st.Ffree < st.Files/100 {
		return &homeError{"the server's disk takes hardly more files; the program was ended, and its thread is as it was before"}
	}
	grown := w.free - free
	if w.quota == 0 || now.Before(w.next) || !w.last.IsZero() && grown < (w.quota-w.used)/2 && now.Sub(w.last) < homeMeasure {
		return nil
	}
	begun := time.Now()
	used, err := disk.Measure(ctx, w.dir, w.quota)
	if err != nil && !errors.Is(err, disk.ErrMore) {
		return nil //nolint:nilerr // likewise
	}
	w.used, w.free, w.last = used, free, now
	w.next = now.Add(homeShare * time.Since(begun))
	if err == nil {
		return nil
	}
	return &homeError{fmt.Sprintf("thread quota exceeded: the home directory takes more than %s of disk; the program was ended, and its thread is as it was before",
		sandbox.FormatBytes(w.quota))}
}
