package contexts

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// local is a Guest whose processes are this machine's, as the guest daemon of a
// sandbox runs them.
type local struct {
	mu   sync.Mutex
	all  map[process.ID]*localProcess // guarded by mu
	list []process.ID                 // guarded by mu
}

type localProcess struct {
	spec  process.Spec
	cmd   *exec.Cmd
	input *os.File

	mu     sync.Mutex
	more   *sync.Cond
	output []process.Chunk // guarded by mu
	last   process.Seq     // guarded by mu
	exit   *process.Exit   // guarded by mu
}

func newLocal(t *testing.T) *local {
	l := &local{all: map[process.ID]*localProcess{}}
	t.Cleanup(func() {
		for _, id := range l.list {
			if l.all[id] != nil {
				_ = l.Kill(context.Background(), id)
				_, _ = l.Wait(context.Background(), id)
			}
		}
	})
	return l
}

func (l *local) find(id process.ID) (*localProcess, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.all[id]; p != nil {
		return p, nil
	}
	return nil, fault.New(fault.NotFound, "there is no process %s", id)
}

func (l *local) Start(_ context.Context, spec process.Spec) (process.Info, error) {
	hooks, err := filepath.Abs("../../guest/hook")
	if err != nil {
		return process.Info{}, err
	}
	p := &localProcess{spec: spec}
	p.more = sync.NewCond(&p.mu)
	argv := make([]string, len(spec.Argv))
	for i, arg := range spec.Argv {
		argv[i] = strings.Replace(arg, runtime.GuestDir, hooks, 1)
	}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir, p.cmd.Env = spec.Dir, append(os.Environ(), spec.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var pipes [4]*os.File // out, err, control, and what is written to it
	var ends [3]*os.File
	for i := range ends {
		if pipes[i], ends[i], err = os.Pipe(); err != nil {
			return process.Info{}, err
		}
	}
	var read *os.File
	if read, p.input, err = os.Pipe(); err != nil {
		return process.Info{}, err
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = ends[0], ends[1], []*os.File{read, ends[2]}
	if err := p.cmd.Start(); err != nil {
		return process.Info{}, err
	}
	read.Close()
	for _, end := range ends {
		end.Close()
	}
	go p.relay(pipes[0], pipes[1], pipes[2])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[spec.ID] = p
	l.list = append(l.list, spec.ID)
	return p.describe(), nil
}

// relay takes output as a guest daemon does: what was written before a message is
// passed on before it.
func (p *localProcess) relay(stdout, stderr, control *os.File) {
	// A read with a deadline takes nothing where this thread comes late: what is there is read without.
	drain := func(f *os.File, s process.Stream) {
		raw, err := f.SyscallConn()
		if err != nil {
			return
		}
		buf := make([]byte, 64<<10)
		for n := 1; n > 0; {
			_ = raw.Read(func(fd uintptr) bool { n, _ = syscall.Read(int(fd), buf); return true })
			p.add(s, buf[:max(n, 0)])
		}
	}
	ended := make(chan *process.Exit, 1)
	go func() {
		err := p.cmd.Wait()
		e := &process.Exit{Code: p.cmd.ProcessState.ExitCode(), At: time.Now()}
		if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && err != nil {
			e.Signal, e.Code = s.Signal(), 128+int(s.Signal())
		}
		ended <- e
	}()
	buf := make([]byte, 64<<10)
	var exit *process.Exit
	for exit == nil {
		select {
		case exit = <-ended: // all that it wrote is in the pipes by now
		default:
		}
		drain(stdout, process.Stdout)
		drain(stderr, process.Stderr)
		_ = control.SetReadDeadline(time.Now().Add(time.Millisecond))
		n, _ := control.Read(buf)
		if n > 0 {
			drain(stdout, process.Stdout)
			drain(stderr, process.Stderr)
			p.add(process.Control, buf[:n])
		}
	}
	_ = control.SetReadDeadline(time.Time{})
	drain(control, process.Control)
	p.mu.Lock()
	p.exit = exit
	p.more.Broadcast()
	p.mu.Unlock()
}

func (p *localProcess) add(s process.Stream, data []byte) {
	if len(data) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last += process.Seq(len(data))
	p.output = append(p.output, process.Chunk{Seq: p.last, Stream: s, Data: append([]byte(nil), data...)})
	p.more.Broadcast()
}

func (p *localProcess) describe() process.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	return process.Info{ID: p.spec.ID, Argv: p.spec.Argv, Dir: p.spec.Dir, Exit: p.exit, Last: p.last}
}

func (l *local) Process(_ context.Context, id process.ID) (process.Info, error) {
	p, err := l.find(id)
	if err != nil {
		return process.Info{}, err
	}
	return p.describe(), nil
}

func (l *local) Processes(context.Context) ([]process.Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []process.Info
	for _, id := range l.list {
		if p := l.all[id]; p != nil {
			out = append(out, p.describe())
		}
	}
	return out, nil
}

func (l *local) Converse(ctx context.Context, id process.ID, data []byte, after process.Seq) (process.Output, error) {
	out, err := l.Follow(ctx, id, after)
	if err != nil {
		return nil, err
	}
	go out.(*follower).p.input.Write(data)
	return out, nil
}

func (l *local) Signal(_ context.Context, id process.ID, sig syscall.Signal, group bool) error {
	p, err := l.find(id)
	if err != nil {
		return err
	}
	pid := p.cmd.Process.Pid
	if group {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

func (l *local) Kill(ctx context.Context, id process.ID) error {
	p, err := l.find(id)
	if err != nil {
		return err
	}
	if p.describe().Exit != nil {
		return fault.New(fault.Conflict, "process %s has ended", id)
	}
	if err := l.Signal(ctx, id, syscall.SIGKILL, true); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

func (l *local) Wait(_ context.Context, id process.ID) (process.Exit, error) {
	p, err := l.find(id)
	if err != nil {
		return process.Exit{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.exit == nil {
		p.more.Wait()
	}
	return *p.exit, nil
}

func (l *local) Discard(ctx context.Context, id process.ID) error {
	if err := l.Kill(ctx, id); err != nil && fault.KindOf(err) != fault.Conflict {
		return err
	}
	if _, err := l.Wait(ctx, id); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, id)
	return nil
}

func (l *local) Follow(ctx context.Context, id process.ID, after process.Seq) (process.Output, error) {
	p, err := l.find(id)
	if err != nil {
		return nil, err
	}
	f := &follower{p: p, at: after, ctx: ctx}
	f.stop = context.AfterFunc(ctx, func() {
		p.mu.Lock() // else a reader that is about to wait would not hear of it
		defer p.mu.Unlock()
		p.more.Broadcast()
	})
	return f, nil
}

type follower struct {
	p    *localProcess
	at   process.Seq
	ctx  context.Context
	stop func() bool
}

func (f *follower) Next() (process.Chunk, error) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for _, c := range p.output {
			if c.Seq > f.at {
				f.at = c.Seq
				return c, nil
			}
		}
		if p.exit != nil {
			return process.Chunk{}, io.EOF
		}
		if f.ctx.Err() != nil {
			return process.Chunk{}, f.ctx.Err()
		}
		p.more.Wait()
	}
}

func (f *follower) Exit() process.Exit { return *f.p.exit }
func (f *follower) Info() process.Info { return f.p.describe() }
func (f *follower) Enough()            { f.stop() }
func (f *follower) Close() error       { f.stop(); return nil }
