package collect

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// ErrStream says that a stream is not one that Write writes.
var ErrStream = errors.New("the sandbox sent no list of files")

// Read reads a stream and passes the contents of each file to put, whose reader has
// exactly f.Bytes bytes unless it fails. asked are the paths that were given to Write.
// What put leaves unread is skipped.
func Read(r io.Reader, asked []string, put func(f execution.OutputFile, r io.Reader) error) (truncated bool, err error) {
	in := bufio.NewReader(r)
	seen := map[string]bool{}
	var total int64
	for {
		name, err := readName(in)
		if err != nil {
			return false, err
		}
		if name == "" {
			break
		}
		size, err := binary.ReadUvarint(in)
		if err != nil || size > uint64(execution.MaxOutputBytes-total) {
			return false, fmt.Errorf("%w: the size of a file", ErrStream)
		}
		total += int64(size)
		if seen[name] || len(seen) == execution.MaxOutputFiles || !within(name, asked) {
			return false, fmt.Errorf("%w: a file that was not asked for", ErrStream)
		}
		seen[name] = true
		data := &io.LimitedReader{R: in, N: int64(size)}
		if err := put(execution.OutputFile{Name: name, Bytes: int64(size)}, data); err != nil {
			return false, err
		}
		if _, err := io.Copy(io.Discard, data); err != nil || data.N != 0 {
			return false, fmt.Errorf("%w: a file ends early", ErrStream)
		}
	}
	last, err := in.ReadByte()
	if err != nil || last > 1 {
		return false, fmt.Errorf("%w: its end", ErrStream)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return false, fmt.Errorf("%w: bytes after its end", ErrStream)
	}
	return last == 1, nil
}

func readName(in *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil || n > execution.MaxFileName {
		return "", fmt.Errorf("%w: the length of a name", ErrStream)
	}
	if n == 0 {
		return "", nil
	}
	name := make([]byte, n)
	if _, err := io.ReadFull(in, name); err != nil {
		return "", fmt.Errorf("%w: a name", ErrStream)
	}
	if err := execution.CheckFileName("outputs", string(name)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrStream, err)
	}
	return string(name), nil
}

// within reports whether name is one of paths, or below one.
func within(name string, paths []string) bool {
	for _, p := range paths {
		p = strings.TrimSuffix(p, "/")
		if name == p || strings.HasPrefix(name, p+"/") {
			return true
		}
	}
	return false
}
