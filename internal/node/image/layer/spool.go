package layer

import (
	"fmt"
	"io"
	"os"
)

// spool keeps the contents of files one after the other in one host file, so
// that no path of an image ever names a host file.
type spool struct {
	f    *os.File
	size int64
	buf  []byte
}

const spoolPiece = 256 << 10 // bytes moved at once

var zeros [spoolPiece]byte

func newSpool(f *os.File) *spool { return &spool{f: f, buf: make([]byte, spoolPiece)} }

// add stores exactly size bytes of r and returns where to read them again.
// Runs of zeros become holes.
func (s *spool) add(r io.Reader, size int64) (io.ReaderAt, error) {
	start := s.size
	for left := size; left > 0; {
		p := s.buf[:min(left, spoolPiece)]
		if _, err := io.ReadFull(r, p); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		left -= int64(len(p))
		if string(p) != string(zeros[:len(p)]) {
			if _, err := s.f.WriteAt(p, s.size); err != nil {
				return nil, spoolError{err}
			}
		} else if err := s.f.Truncate(s.size + int64(len(p))); err != nil {
			return nil, spoolError{err}
		}
		s.size += int64(len(p))
	}
	return io.NewSectionReader(s.f, start, size), nil
}

// spoolError is a failure of the host's disk, not of the layer.
type spoolError struct{ err error }

func (e spoolError) Error() string { return fmt.Sprintf("spool layer: %v", e.err) }
func (e spoolError) Unwrap() error { return e.err }
