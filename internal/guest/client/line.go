package client

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Patience is how long a guest may keep the host waiting. Time that the host, or its
// caller, takes to read or to say something is not counted.
type Patience struct {
	Silence time.Duration // for an answer, the next piece of content, or room for one
	Work    time.Duration // for the answer to what takes its time, such as to remove a tree
	// While anything is under way the guest is asked for a sign of life every Pulse, for
	// which it has as long again. That ends what may wait for as long as it likes: for a
	// process, a change, or on a connection with a port.
	Pulse time.Duration
}

// Usual is the Patience of Dial. A bucket that is mounted may take a while for each of
// the files of a tree, or for the last piece of a large one.
var Usual = Patience{Silence: time.Minute, Work: 10 * time.Minute, Pulse: 30 * time.Second}

// slowest is how many bytes of content there are to be in a second, on an average over
// the Silence: less is none.
const slowest = 1 << 10

// ErrSilent is within what says that a sandbox did not answer.
var ErrSilent = errors.New("the guest daemon is silent")

var errSilent error = fault.Wrap(fault.Conflict, ErrSilent,
	"the sandbox does not answer, and was given up; what was asked for may be done in part, or still be under way: look before you try again, and destroy the sandbox if this happens again")

// line is a connection whose other end may keep this one waiting for so long.
type line struct {
	*net.UnixConn
	most    time.Duration // 0 for as long as it likes
	left    time.Duration
	content bool                       // what comes or goes gives time back
	stood   func(since time.Time) bool // whether the sandbox could not say anything; nil for no
}

// within bounds what is waited for from here on. No other goroutine reads or writes meanwhile.
func (l *line) within(most time.Duration, content bool) {
	if most == 0 && l.most > 0 {
		l.SetDeadline(time.Time{}) //nolint:errcheck // it would show with what comes next
	}
	l.most, l.left, l.content = most, most, content
}

func (l *line) Read(p []byte) (int, error) {
	if l.most == 0 {
		return l.UnixConn.Read(p)
	}
	for {
		began := time.Now()
		l.SetReadDeadline(began.Add(l.left)) //nolint:errcheck // it would show with the read
		n, err := l.UnixConn.Read(p)
		if err = l.spent(began, n, err); err != errSilent || l.left <= 0 {
			return n, err
		}
	}
}

func (l *line) Write(p []byte) (total int, err error) {
	if l.most == 0 {
		return l.UnixConn.Write(p)
	}
	for {
		began := time.Now()
		l.SetWriteDeadline(began.Add(l.left)) //nolint:errcheck // it would show with the write
		n, err := l.UnixConn.Write(p[total:])
		total += n
		if err = l.spent(began, n, err); err != errSilent || l.left <= 0 {
			return total, err
		} // some of it was taken
	}
}

// spent counts what was waited for n bytes. With errSilent, and time left, there is
// to be another try.
func (l *line) spent(began time.Time, n int, err error) error {
	l.left -= time.Since(began)
	if l.content {
		l.left = min(l.most, l.left+time.Duration(n)*(time.Second/slowest))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if l.stood != nil && l.stood(began) {
		l.left = l.most
	}
	return errSilent
}
