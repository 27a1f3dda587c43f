package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher is a runsc process that starts one sandbox after the other, so that each
// start is without the process's own. See runsc/launch.go, the other side.
type launcher struct {
	cmd      *exec.Cmd
	conn     *net.UnixConn
	launched int
	rest     *time.Timer // ends it, while it is idle
}

// launchers are those that have nothing to do. There are as many as sandboxes were
// started at once.
type launchers struct {
	mu     sync.Mutex
	idle   []*launcher
	closed bool
}

const (
	// launcherRest is how long one is kept that has nothing to do.
	launcherRest = 10 * time.Second
	// mostLaunched bounds what one could gather, had gVisor's code not given all back.
	mostLaunched = 500
)

// mostIdle bounds how many are kept after a burst: as many start sandboxes at once as
// have processors, and as many again that wait for what they started.
var mostIdle = 2 * goruntime.NumCPU()

// launchBy starts a sandbox as a runsc command with these arguments would.
func (r *Runtime) launchBy(ctx context.Context, l launch) error {
	for {
		p := r.launchers.get()
		if p == nil {
			var err error
			if p, err = r.startLauncher(ctx); err != nil {
				return err
			}
		}
		err := p.launch(ctx, l)
		if err == nil {
			r.launchers.put(p)
			return nil
		}
		p.kill()
		// A connection is reset by an end that has not read all it was sent.
		unread := errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
		if p.launched > 1 && unread && ctx.Err() == nil {
			continue // it had ended while it had nothing to do
		}
		return err
	}
}

// launch is what a launcher is asked for.
type launch struct {
	Args  []string
	Tasks []string `json:",omitempty"`
	Group string   `json:",omitempty"`

	stdio []*os.File
}

// startLauncher starts one that lives on when ctx ends.
func (r *Runtime) startLauncher(ctx context.Context) (*launcher, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "launcher"), os.NewFile(uintptr(pair[1]), "launcher")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), r.cfg.Runsc, rootFlag+r.cfg.State) // whose it is; each launch has a root of its own
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "ATOLL_RUNSC_LAUNCH=1"}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a := r.users.attributes(); a != nil {
		cmd.SysProcAttr = a
	}
	cmd.SysProcAttr.Setpgid = true // a terminal's interrupt is the server's to answer
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &launcher{cmd: cmd, conn: conn.(*net.UnixConn)}, nil
}

// launch starts one sandbox. After an error the launcher is of no more use.
func (p *launcher) launch(ctx context.Context, l launch) error {
	asked, err := json.Marshal(l)
	if err != nil {
		return err
	}
	var fds []int
	for _, f := range l.stdio {
		fds = append(fds, int(f.Fd()))
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	p.launched++
	if _, _, err := p.conn.WriteMsgUnix(asked, unix.UnixRights(fds...), nil); err != nil {
		return p.failed(ctx, err)
	}
	answer := make([]byte, 4<<10)
	n, err := p.conn.Read(answer)
	switch {
	case err != nil:
		return p.failed(ctx, err)
	case n == 0 || answer[0] != '.': // the text follows, which may be empty
		return p.failed(ctx, io.ErrUnexpectedEOF)
	case n > 1:
		return errors.New(string(answer[1:n]))
	case !stop(): // it is being killed, so that it must not start another
		return p.failed(ctx, context.Canceled)
	}
	return nil
}

// failed is why a launcher did not answer.
func (p *launcher) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("runsc ended: %w", err)
}

// end ends a launcher that has nothing to do: it goes once its socket is closed.
func (p *launcher) end() {
	_ = p.conn.Close()
	_ = p.cmd.Wait() // how it ended changes nothing
}

func (p *launcher) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	p.end()
}

// get takes one that has nothing to do, nil where there is none.
func (l *launchers) get() *launcher {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	p := l.idle[n-1]
	l.idle = l.idle[:n-1]
	p.rest.Stop() // where it is too late for that, what it does finds nothing to end
	return p
}

// put gives back one that may be used again.
func (l *launchers) put(p *launcher) {
	l.mu.Lock()
	keep := !l.closed && p.launched < mostLaunched && len(l.idle) < mostIdle
	if keep {
		l.idle = append(l.idle, p)
		p.rest = time.AfterFunc(launcherRest, func() { l.drop(p) })
	}
	l.mu.Unlock()
	if !keep {
		p.end()
	}
}

// drop ends one, unless it has something to do again.
func (l *launchers) drop(p *launcher) {
	l.mu.Lock()
	i := slices.Index(l.idle, p)
	if i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		p.end()
	}
}

// close ends those that have nothing to do; the others end when they have done it.
func (l *launchers) close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	for _, p := range idle {
		p.rest.Stop()
		p.end()
	}
}
