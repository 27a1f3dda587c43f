package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// blockBytes is the least that a file with content takes of a disk.
const blockBytes = 4096

// How any file is opened, whatever stands there by then, and one that is made.
const (
	openAny = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	openNew = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// file copies an open file, or its name if it was copied under another.
func (m *folderCopy) file(in, to int, name string, st *unix.Stat_t) error {
	m.files++
	if st.Nlink > 1 {
		if had, ok := m.names[st.Ino]; ok {
			return m.hardLink(had, to, name)
		}
		if len(m.names) >= maxCopyLinks {
			return fmt.Errorf("%w: too many files with several names", ErrUnsupported)
		}
		m.names[st.Ino] = first{strings.Join(m.at, "/"), name}
	}
	if err := m.spend(entryBytes); err != nil {
		return err
	}
	out, err := unix.Openat(to, name, openNew, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(m.content(in, out, st), unix.Close(out))
}

// content copies what a file has, and then how it is.
func (m *folderCopy) content(in, out int, st *unix.Stat_t) (err error) {
	m.bytes += st.Size
	if st.Size <= int64(len(m.piece)) {
		err = m.small(in, out, int(st.Size))
	} else {
		err = m.large(in, out, st.Size)
	}
	if err != nil {
		return err
	}
	return copyAttributes(out, st)
}

// hardLink makes another name of a copy. The way to it is gone anew, since it may not be
// where it was made.
func (m *folderCopy) hardLink(had first, to int, name string) error {
	folder, err := descend(m.root, had.folder)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	if err := m.spend(entryBytes); err != nil {
		return err
	}
	return unix.Linkat(folder, had.name, to, name, 0)
}

// small copies a file through memory.
func (m *folderCopy) small(in, out, size int) error {
	if size == 0 {
		return nil
	}
	if err := m.spend(int64(size+blockBytes-1) &^ (blockBytes - 1)); err != nil {
		return err
	}
	have := 0
	for have < size {
		n, err := unix.Read(in, m.piece[have:size])
		if err != nil {
			return err
		}
		if n == 0 {
			return errShorter
		}
		have += n
	}
	return writeOut(out, m.piece[:size])
}

var errShorter = fmt.Errorf("%w: it became shorter: %w", ErrUnsupported, io.ErrUnexpectedEOF)

func writeOut(out int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(out, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// large copies what a file has besides holes.
func (m *folderCopy) large(in, out int, size int64) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(in, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole to the end, or there is less than there was
			break
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(in, data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if at = min(hole, size); data < at {
			if err := m.extent(in, out, data, at); err != nil {
				return err
			}
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil {
		return err
	}
	if st.Size < size {
		return errShorter
	}
	return unix.Ftruncate(out, size)
}

// extent copies a part of a file without holes.
func (m *folderCopy) extent(in, out int, at, end int64) error {
	for at < end {
		if err := context.Cause(m.ctx); err != nil {
			return err
		}
		n := min(end-at, copyPiece)
		if err := m.spend(n); err != nil {
			return err
		}
		for stop := at + n; at < stop; {
			from, to := at, at
			n, err := unix.CopyFileRange(in, &from, out, &to, int(stop-at), 0)
			if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
				n, err = m.copyThrough(in, out, at, stop)
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return errShorter
			}
			at += int64(n)
		}
	}
	return nil
}

// copyThrough copies as much of a part as memory takes.
func (m *folderCopy) copyThrough(in, out int, at, end int64) (int, error) {
	n, err := unix.Pread(in, m.piece[:min(end-at, int64(len(m.piece)))], at)
	if err != nil || n == 0 {
		return 0, err
	}
	if _, err := unix.Seek(out, at, io.SeekStart); err != nil {
		return 0, err
	}
	return n, writeOut(out, m.piece[:n])
}
