package initclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// own returns a non-blocking duplicate of f, which a Client can close under its
// reader while the Channel's owner keeps f.
func own(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dup int
	var dupErr error
	if err := raw.Control(func(fd uintptr) {
		if dup, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); dupErr == nil {
			dupErr = unix.SetNonblock(dup, true)
		}
	}); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, dupErr
	}
	return os.NewFile(uintptr(dup), f.Name()), nil
}

// sender writes frames to the guest, whole messages at a time.
type sender struct {
	f    *os.File
	turn chan struct{} // holds one token: whose turn it is to write
}

func newSender(f *os.File) *sender {
	s := &sender{f: f, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// send writes a message in frames that the kernel never tears apart. prefix is
// called when it is this message's turn; what it returns goes in front.
func (s *sender) send(ctx context.Context, f wire.Frame, prefix func() []byte) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()

	var buf []byte
	if prefix != nil {
		buf = prefix()
	}
	const most = wire.MaxRequest - wire.HeaderSize
	body := f.Payload
	f.Flags |= wire.First
	for {
		f.Payload = body[:min(len(body), most)]
		if body = body[len(f.Payload):]; len(body) == 0 {
			f.Flags |= wire.Last
		}
		if len(buf) > 0 && len(buf)+wire.HeaderSize+len(f.Payload) > wire.MaxRequest {
			if err := s.write(ctx, buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		buf = wire.AppendFrame(buf, f)
		if f.Flags&wire.Last != 0 {
			return s.write(ctx, buf)
		}
		f.Flags = 0
	}
}

// write writes b, of at most wire.MaxRequest bytes; the end of ctx interrupts it.
func (s *sender) write(ctx context.Context, b []byte) error {
	if ctx.Done() != nil {
		fired := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(fired)
			s.f.SetWriteDeadline(time.Unix(1, 0))
		})
		defer func() {
			if !stop() {
				<-fired
				s.f.SetWriteDeadline(time.Time{})
			}
		}()
	}
	_, err := s.f.Write(b)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(ctx)
	case errors.Is(err, os.ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("write to guest: %w", err)
}
