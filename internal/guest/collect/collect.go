// Package collect brings the files that a program gives back out of its sandbox. Write
// runs in the sandbox, as the unprivileged user, with the stream as its stdout; Read
// runs on the host and trusts nothing of it.
//
// The stream is a sequence of files: the length of the name, the name, the size, the
// contents; integers are unsigned varints. A name of length 0 ends it, followed by a
// byte that is 1 if files were left out, else 0.
package collect

import (
	"bufio"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Command is the first argument that has the guest daemon's binary call Write with
// the others.
const Command = "collect"

// Overhead is how many bytes a stream has at most besides the contents of files.
const Overhead = execution.MaxOutputFiles*(execution.MaxFileName+2*binary.MaxVarintLen64) + 16

// Write writes the files at paths, and below those that are folders, to w. Paths
// are relative to the working directory. What is not there, and what is no regular
// file, is passed over.
func Write(w io.Writer, paths []string) error {
	out := &writer{w: bufio.NewWriterSize(w, 64<<10), seen: map[string]bool{}}
	for _, p := range paths {
		if err := out.all(path.Clean(p)); err != nil {
			return err
		}
	}
	end := []byte{0, 0}
	if out.truncated {
		end[1] = 1
	}
	if _, err := out.w.Write(end); err != nil {
		return err
	}
	return out.w.Flush()
}

type writer struct {
	w         *bufio.Writer
	seen      map[string]bool
	files     int
	bytes     int64
	truncated bool
}

func (o *writer) all(name string) error {
	return fs.WalkDir(os.DirFS("."), name, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone, or closed to the user
		}
		if !d.Type().IsRegular() || o.seen[name] {
			return nil
		}
		o.seen[name] = true
		return o.file(name)
	})
}

func (o *writer) file(name string) error {
	if o.files == execution.MaxOutputFiles || execution.CheckFileName("", name) != nil {
		o.truncated = true
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil //nolint:nilerr // as in all
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil //nolint:nilerr // as in all
	}
	size := st.Size()
	if size > execution.MaxOutputBytes-o.bytes {
		o.truncated = true
		return nil
	}
	o.files++
	o.bytes += size
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = binary.AppendUvarint(append(head, name...), uint64(size))
	if _, err := o.w.Write(head); err != nil {
		return err
	}
	n, err := io.Copy(o.w, io.LimitReader(f, size))
	if err != nil && n == size {
		return err
	}
	for ; n < size; n++ { // another process made it shorter
		if err := o.w.WriteByte(0); err != nil {
			return err
		}
	}
	return nil
}
