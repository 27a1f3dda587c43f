package disk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// How a folder is watched. The file system's own figures cost next to nothing; the
// folder is measured when these say that it may have grown by half of what is left
// to it, and now and then all the same, since somebody else may have freed as much.
const (
	measureEvery = 10 * time.Second
	measureShare = 10 // measuring takes at most one part in so many of the time
)

// Watch notices that a folder outgrows its bound. Its methods are called one at a
// time.
type Watch struct {
	Dir  string
	Most int64 // bytes; 0 for no bound
	Keep int64 // bytes of the disk that stay free

	used int64     // when it was measured last
	free int64     // of the file system, then
	next time.Time // no measuring before
	last time.Time // of measuring
}

var (
	// ErrFull says that the disk has less free than is to be kept.
	ErrFull = errors.New("the disk has too little space left")
	// ErrFiles says that the disk takes hardly more files.
	ErrFiles = errors.New("the disk takes hardly more files")
)

// Used is what the folder took when it was measured last.
func (w *Watch) Used() int64 { return w.used }

// Look returns ErrMore, ErrFull or ErrFiles. What cannot be looked at is nobody's
// any more, and no error. It is noticed late: whoever writes may do so between two
// looks, and for as long as the measuring takes.
func (w *Watch) Look(ctx context.Context, now time.Time) error {
	var st unix.Statfs_t
	if err := unix.Statfs(w.Dir, &st); err != nil {
		return nil //nolint:nilerr // the folder is gone
	}
	free := int64(st.Bavail) * st.Bsize
	if free < w.Keep {
		return ErrFull
	}
	if st.Files > 0 && st.Ffree < st.Files/100 {
		return ErrFiles
	}
	grown := w.free - free
	if w.Most == 0 || now.Before(w.next) || !w.last.IsZero() && grown < (w.Most-w.used)/2 && now.Sub(w.last) < measureEvery {
		return nil
	}
	begun := time.Now()
	used, err := Measure(ctx, w.Dir, w.Most)
	if err != nil && !errors.Is(err, ErrMore) {
		return nil //nolint:nilerr // likewise
	}
	w.used, w.free, w.last = used, free, now
	w.next = now.Add(measureShare * time.Since(begun))
	return err
}
