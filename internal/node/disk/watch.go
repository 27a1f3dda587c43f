package disk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// How a folder is watched. The file system's own figures cost next to nothing; the
// folder is measured when these say that it may have grown by half of what is left
// to it, and now and then all the same, since another folder may have shrunk as much.
const (
	measureEvery = 10 * time.Second
	measureShare = 10 // measuring takes at most one part in so many of the time,
	// but is not put off for longer than measureLatest, however many files there are.
	measureLatest = 30 * time.Second
)

// Watch notices that a folder outgrows its bound. Its methods are called one at a
// time.
type Watch struct {
	Dir   string
	Limit int64 // bytes; 0 for no bound
	Keep  int64 // bytes of the disk that stay free
	// Measure is how the folder is measured, up to a bound as the package's Measure
	// is; nil for that.
	Measure func(ctx context.Context, most int64) (used int64, err error)

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

// Look returns ErrOverLimit, ErrFull or ErrFiles. A folder that cannot be read is gone,
// and no error. A folder over its limit is noticed late: programs may write between two
// looks, and for as long as the measuring takes.
func (w *Watch) Look(ctx context.Context, now time.Time) error {
	if err := w.CheckDisk(); err != nil {
		return err
	}
	return w.CheckFolder(ctx, now)
}

// CheckDisk returns ErrFull or ErrFiles: what Look does of the whole disk.
func (w *Watch) CheckDisk() error {
	var st unix.Statfs_t
	switch err := unix.Statfs(w.Dir, &st); {
	case err != nil:
		return nil //nolint:nilerr // the folder is gone
	case int64(st.Bavail)*st.Bsize < w.Keep:
		return ErrFull
	case st.Files > 0 && st.Ffree < st.Files/100:
		return ErrFiles
	}
	return nil
}

// CheckFolder returns ErrOverLimit: what Look does of the folder.
func (w *Watch) CheckFolder(ctx context.Context, now time.Time) error {
	var st unix.Statfs_t
	if w.Limit == 0 || now.Before(w.next) || unix.Statfs(w.Dir, &st) != nil {
		return nil
	}
	free := int64(st.Bavail) * st.Bsize
	if grown := w.free - free; !w.last.IsZero() && grown < (w.Limit-w.used)/2 && now.Sub(w.last) < measureEvery {
		return nil
	}
	_, err := w.measure(ctx, now, free, w.Limit)
	if err != nil && !errors.Is(err, ErrOverLimit) {
		return nil //nolint:nilerr // likewise
	}
	return err
}

// Remeasure measures the folder to its end at once. Who then grows grows from there.
func (w *Watch) Remeasure(ctx context.Context, now time.Time) (used int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(w.Dir, &st); err != nil {
		return 0, err
	}
	return w.measure(ctx, now, int64(st.Bavail)*st.Bsize, noLimit)
}

// noLimit is more than any folder takes.
const noLimit = 1 << 62

func (w *Watch) measure(ctx context.Context, now time.Time, free, most int64) (used int64, err error) {
	begun := time.Now()
	if w.Measure != nil {
		used, err = w.Measure(ctx, most)
	} else {
		used, err = Measure(ctx, w.Dir, most)
	}
	if err == nil || errors.Is(err, ErrOverLimit) {
		w.used, w.free, w.last = used, free, now
		w.next = now.Add(min(measureShare*time.Since(begun), measureLatest))
	}
	return used, err
}
