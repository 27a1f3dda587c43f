package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// stream is a sandbox that has so many bytes above its image, and stops only when it cannot write.
type stream struct {
	t     *testing.T
	bytes int
	err   error
	keeps bool // its end of the file
	then  func()
}

func (s stream) WriteUpper(_ context.Context, f *os.File) error {
	if s.keeps {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			return err
		}
		s.t.Cleanup(func() { unix.Close(fd) })
	}
	piece := make([]byte, 64<<10)
	for left := s.bytes; left > 0; left -= len(piece) {
		if _, err := f.Write(piece[:min(left, len(piece))]); err != nil {
			return err
		}
	}
	if s.then != nil {
		s.then()
	}
	return s.err
}

// TestCopyUpper: of what a sandbox has above its image no more is taken than is let, and the
// host waits no longer than it may.
func TestCopyUpper(t *testing.T) {
	const most = 1 << 20
	for name, c := range map[string]struct {
		bytes int
		large bool
	}{"nothing": {0, false}, "as much as is let": {most, false}, "one more": {most + 1, true}, "very much": {1 << 30, true}} {
		var to bytes.Buffer
		err := copyUpper(t.Context(), stream{t: t, bytes: c.bytes}, &to, most)
		_, refused := errors.AsType[*ProgramError](err)
		if refused != c.large || !c.large && (err != nil || to.Len() != c.bytes) || to.Len() > most+1 {
			t.Errorf("%s: %d bytes were taken: %v", name, to.Len(), err)
		}
	}
	away := errors.New("away")
	if err := copyUpper(t.Context(), stream{t: t, bytes: 10, err: away, keeps: true}, new(bytes.Buffer), most); !errors.Is(err, away) {
		t.Errorf("a sandbox that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := copyUpper(ctx, stream{t: t, bytes: 10, keeps: true, then: cancel}, new(bytes.Buffer), most); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a sandbox that comes to no end: %v", err)
	}
}
