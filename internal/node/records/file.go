package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	fileName = "journal"
	tempName = "journal.new"
)

// file is the journal's file. Writers append, and wait together for one fsync.
type file struct {
	dir string

	mu      sync.Mutex // guards the rest
	f       *os.File
	size    int64 // bytes in the file
	written int64 // bytes ever written, also to former files
	synced  int64 // the part of written that a power failure leaves
	failed  error // why the journal cannot be written any more

	syncing sync.Mutex // held during an fsync; taken before mu
}

// write appends frames. They survive the end of the process, and after sync(at) a power failure.
func (w *file) write(frames ...frame) (at int64, err error) {
	var b []byte
	for _, f := range frames {
		b = appendFrame(b, f)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return 0, w.failed
	}
	n, err := w.f.Write(b)
	if err != nil {
		if n > 0 { // a later frame must not follow half of this one
			if undo := w.f.Truncate(w.size); undo != nil {
				w.fail(errors.Join(err, undo))
			}
		}
		return 0, unwritable(err)
	}
	w.size += int64(n)
	w.written += int64(n)
	return w.written, nil
}

// sync returns once the file is on disk up to at.
func (w *file) sync(at int64) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	f, target, done, err := w.f, w.written, w.synced >= at, w.failed
	w.mu.Unlock()
	if err != nil || done {
		return err
	}
	err = f.Sync()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil { // the kernel may have dropped unwritten pages, so a second fsync would succeed falsely
		w.fail(err)
		return w.failed
	}
	w.synced = target
	return nil
}

// fail ends all use of the file. mu is held.
func (w *file) fail(err error) {
	if w.failed == nil {
		w.failed = unwritable(err)
	}
}

func unwritable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the journal of this executor's sandboxes cannot be written; check its disk, then restart the executor")
}

// replace replaces the whole file. No write may run at the same time.
func (w *file) replace(frames []frame) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	var b []byte
	for _, f := range frames {
		b = appendFrame(b, f)
	}
	next, replaced, err := writeFile(w.dir, b)
	if err != nil {
		if replaced {
			w.fail(err)
		}
		return unwritable(err) // else the old file is still whole
	}
	if w.f != nil {
		w.f.Close()
	}
	w.f, w.size = next, int64(len(b))
	w.written += int64(len(b))
	w.synced = w.written
	return nil
}

// writeFile replaces the file in dir and returns it, open for appending. replaced says that the old
// file is gone.
func writeFile(dir string, b []byte) (_ *os.File, replaced bool, err error) {
	temp := filepath.Join(dir, tempName)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if _, err := f.Write(b); err != nil {
		return nil, false, err
	}
	if err := f.Sync(); err != nil {
		return nil, false, err
	}
	if err := os.Rename(temp, filepath.Join(dir, fileName)); err != nil {
		return nil, false, err
	}
	return f, true, syncDir(dir)
}

// syncDir makes changes of the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read reads the file in dir. found is false if the file does not exist.
func read(dir string) (p parsed, found bool, err error) {
	f, err := os.Open(filepath.Join(dir, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return p, false, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return parse(b), true, nil
}

// close closes the file. Later writes fail.
func (w *file) close() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = errClosed
	}
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	return f.Close()
}

// durable reports whether the file up to at survives a power failure.
func (w *file) durable(at int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced >= at
}

// length returns the bytes in the file.
func (w *file) length() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

var errClosed = fault.New(fault.Unavailable, "the executor is shutting down; retry in a few seconds")
