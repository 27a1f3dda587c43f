package daemonclient

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Timeouts are how long a guest may keep the host waiting. Time that the host, or its
// caller, takes to read or to say something is not counted.
type Timeouts struct {
	Silence time.Duration // for an answer, the next piece of content, or room for one
	Work    time.Duration // for the answer to what takes its time, such as to remove a tree
	// While anything is under way the guest is asked for a sign of life every Pulse, for
	// which it has Sign, or as long again if that is 0. That ends what may wait for as long
	// as it likes: for a process, a change, or on a connection with a port.
	Pulse, Sign time.Duration
}

// DefaultTimeouts are those of Dial. A bucket that is mounted may take a while for each of
// the files of a tree, or for the last piece of a large one.
var DefaultTimeouts = Timeouts{Silence: time.Minute, Work: 10 * time.Minute, Pulse: 30 * time.Second}

// minRate is how many bytes of content must come or go in a second, on average over
// the Silence: less counts as silence.
const minRate = 1 << 10

// ErrSilent is wrapped by errors that say that a sandbox did not answer.
var ErrSilent = errors.New("the guest daemon is silent")

var errSilent error = fault.Wrap(fault.Conflict, ErrSilent,
	"the sandbox does not respond. The call may be partly done or still running: check before you retry, and destroy the sandbox if this happens again")

// timedConn is a connection whose other end may keep this one waiting for limit.
type timedConn struct {
	*net.UnixConn
	limit     time.Duration // 0 for no limit
	left      time.Duration
	content   bool                       // bytes that come or go add time
	wasFrozen func(since time.Time) bool // whether the sandbox was frozen, and could not answer; nil for no
}

// setLimit bounds the waits from here on. No other goroutine reads or writes meanwhile.
func (l *timedConn) setLimit(most time.Duration, content bool) {
	if most == 0 && l.limit > 0 {
		l.SetDeadline(time.Time{}) //nolint:errcheck // it would show with what comes next
	}
	l.limit, l.left, l.content = most, most, content
}

func (l *timedConn) Read(p []byte) (int, error) {
	if l.limit == 0 {
		return l.UnixConn.Read(p)
	}
	for {
		began := time.Now()
		l.SetReadDeadline(began.Add(l.left)) //nolint:errcheck // it would show with the read
		n, err := l.UnixConn.Read(p)
		if err = l.charge(began, n, err); err != errSilent || l.left <= 0 {
			return n, err
		}
	}
}

func (l *timedConn) Write(p []byte) (total int, err error) {
	if l.limit == 0 {
		return l.UnixConn.Write(p)
	}
	for {
		began := time.Now()
		l.SetWriteDeadline(began.Add(l.left)) //nolint:errcheck // it would show with the write
		n, err := l.UnixConn.Write(p[total:])
		total += n
		if err = l.charge(began, n, err); err != errSilent || l.left <= 0 {
			return total, err
		} // some of it was taken
	}
}

// charge counts the time that n bytes took. With errSilent and time left, the caller
// tries again.
func (l *timedConn) charge(began time.Time, n int, err error) error {
	l.left -= time.Since(began)
	if l.content {
		l.left = min(l.limit, l.left+time.Duration(n)*(time.Second/minRate))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if l.wasFrozen != nil && l.wasFrozen(began) {
		l.left = l.limit
	}
	return errSilent
}
