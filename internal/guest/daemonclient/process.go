package daemonclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

func wireSpec(s *process.Spec) *proto.Start {
	q := &proto.Start{
		ID: string(s.ID), Argv: list(s.Argv), Env: list(s.Env), Dir: []byte(s.Dir), Input: s.Input, Control: s.Control,
		Timeout: int64(max(s.Timeout, 0)), Lossless: s.Lossless, Patient: s.Patient, OpenFiles: max(s.Limits.OpenFiles, 0),
	}
	if q.ID == "" {
		q.ID = string(process.NewID())
	}
	if len(s.Argv) == 0 {
		text := []byte(s.Shell)
		q.Shell = &text
	}
	if s.Terminal != nil {
		q.Terminal = &proto.Size{Rows: s.Terminal.Rows, Columns: s.Terminal.Columns}
	}
	return q
}

func list(texts []string) (out [][]byte) {
	for _, t := range texts {
		out = append(out, []byte(t))
	}
	return out
}

// maxOutput bounds what processes are said to have written.
const maxOutput = 1 << 60

// process checks what a guest daemon says of a process.
func infoOf(p *proto.Process) (process.Info, error) {
	if p == nil || len(p.ID) > 64 || p.PID < 0 || p.First < 0 || p.Last < p.First || p.Last > maxOutput {
		return process.Info{}, fmt.Errorf("%w: a process that cannot be", ErrProtocol)
	}
	out := process.Info{
		ID: process.ID(p.ID), PID: p.PID, Dir: string(p.Dir), Started: time.UnixMicro(p.Started), Input: p.Input, Terminal: p.Terminal,
		First: process.Seq(p.First), Last: process.Seq(p.Last), Written: p.Written,
	}
	for _, n := range p.Written {
		if n < 0 || n > maxOutput {
			return process.Info{}, fmt.Errorf("%w: a process that cannot be", ErrProtocol)
		}
	}
	for _, a := range p.Argv {
		out.Argv = append(out.Argv, string(a))
	}
	if p.Exit != nil {
		e, err := exitOf(p.Exit)
		if err != nil {
			return process.Info{}, err
		}
		out.Exit = &e
	}
	return out, nil
}

func exitOf(e *proto.Exit) (process.Exit, error) {
	if e == nil || e.Code < 0 || e.Code > 255 || e.Signal < 0 || e.Signal > 127 || e.CPU < 0 || e.PeakRSS < 0 || len(e.Blocked) > maxText {
		return process.Exit{}, fmt.Errorf("%w: an end that cannot be", ErrProtocol)
	}
	return process.Exit{
		Code: e.Code, Signal: syscall.Signal(e.Signal), TimedOut: e.TimedOut, Blocked: strings.ToValidUTF8(e.Blocked, "�"), Together: e.Together, OutOfMemory: e.OutOfMemory,
		At: time.UnixMicro(e.At), CPU: time.Duration(e.CPU), PeakRSS: e.PeakRSS,
	}, nil
}

// about makes a request that is answered with a process.
func (c *Client) about(ctx context.Context, q proto.Request) (process.Info, error) {
	x, r, err := c.begin(ctx, q)
	if err != nil {
		return process.Info{}, err
	}
	p, err := infoOf(r.Process)
	if err != nil {
		return process.Info{}, x.failed(err)
	}
	x.finish()
	return p, nil
}

// Start starts a process.
func (c *Client) Start(ctx context.Context, spec process.Spec) (process.Info, error) {
	return c.about(ctx, proto.Request{Start: wireSpec(&spec)})
}

// Run starts a process, follows it, and forgets it once its end was read: Start,
// Follow and Forget in one exchange. When the Output is closed earlier, or ctx or
// the conversation ends, the process goes on and stays.
func (c *Client) Run(ctx context.Context, spec process.Spec) (process.Output, error) {
	q := wireSpec(&spec)
	q.Follow = true
	return c.output(ctx, proto.Request{Start: q}, 0)
}

// Follow returns the output of a process from a place on, until its end, or that
// of ctx.
func (c *Client) Follow(ctx context.Context, id process.ID, after process.Seq) (process.Output, error) {
	return c.output(ctx, proto.Request{Follow: &proto.Follow{ID: string(id), After: int64(after)}}, int64(after))
}

// Converse writes to descriptor 3 of a process and returns its output from a place
// on, as WriteControl and Follow do, in one exchange. What the process does not read
// at once is written as it does, while the Output is open. A line of descriptor 4
// with a blank at its end says that this was all for now: then the guest daemon
// takes the next request, and what Next returns after it is ErrEnough.
func (c *Client) Converse(ctx context.Context, id process.ID, data []byte, after process.Seq) (process.Output, error) {
	return c.output(ctx, proto.Request{Converse: &proto.Converse{ID: string(id), Data: data, After: int64(after), Ends: true}}, int64(after))
}

// Processes lists the processes that are not forgotten, oldest first.
func (c *Client) Processes(ctx context.Context) ([]process.Info, error) {
	x, r, err := c.begin(ctx, proto.Request{Processes: &proto.Empty{}})
	if err != nil {
		return nil, err
	}
	if len(r.Processes) > 2*MaxProcesses {
		return nil, x.failed(fmt.Errorf("%w: %d processes", ErrProtocol, len(r.Processes)))
	}
	all := make([]process.Info, 0, len(r.Processes))
	for i := range r.Processes {
		p, err := infoOf(&r.Processes[i])
		if err != nil {
			return nil, x.failed(err)
		}
		all = append(all, p)
	}
	x.finish()
	return all, nil
}

// Process describes one process.
func (c *Client) Process(ctx context.Context, id process.ID) (process.Info, error) {
	return c.about(ctx, proto.Request{Process: &proto.Name{ID: string(id)}})
}

// Wait returns the end of a process when it has come.
func (c *Client) Wait(ctx context.Context, id process.ID) (process.Exit, error) {
	p, err := c.about(ctx, proto.Request{Wait: &proto.Name{ID: string(id)}})
	if err != nil {
		return process.Exit{}, err
	}
	if p.Exit == nil {
		err := fmt.Errorf("%w: no end, where one was waited for", ErrProtocol)
		c.fail(err)
		return process.Exit{}, err
	}
	return *p.Exit, nil
}

// Write writes to the input or terminal of a process, and returns when it is all
// in the pipe. n is how much was, if not all.
func (c *Client) Write(ctx context.Context, id process.ID, data []byte) (n int, err error) {
	return c.write(ctx, proto.Write{ID: string(id)}, data)
}

// WriteControl writes to descriptor 3 of a process, as Write does.
func (c *Client) WriteControl(ctx context.Context, id process.ID, data []byte) (n int, err error) {
	return c.write(ctx, proto.Write{ID: string(id), Control: true}, data)
}

func (c *Client) write(ctx context.Context, q proto.Write, data []byte) (n int, err error) {
	for {
		piece := data[n:min(len(data), n+proto.Piece)]
		r, err := c.send(ctx, proto.Request{Write: &q}, bytes.NewReader(piece))
		if err != nil {
			return n, err
		}
		if r.Size < 0 || r.Size > int64(len(piece)) {
			err := fmt.Errorf("%w: more was written than was sent", ErrProtocol)
			c.fail(err)
			return n, err
		}
		n += int(r.Size)
		if n == len(data) {
			return n, nil
		}
		if r.Size == 0 {
			return n, io.ErrShortWrite
		}
	}
}

// CloseInput ends the input of a process. A terminal gets what the keys for it send.
func (c *Client) CloseInput(ctx context.Context, id process.ID) error {
	_, err := c.call(ctx, proto.Request{Close: &proto.Name{ID: string(id)}})
	return err
}

// Resize changes the size of a process's terminal.
func (c *Client) Resize(ctx context.Context, id process.ID, size process.Size) error {
	_, err := c.call(ctx, proto.Request{Resize: &proto.Resize{ID: string(id), Size: proto.Size{Rows: size.Rows, Columns: size.Columns}}})
	return err
}

// Signal sends a signal to a process, or to its process group: of one with a
// terminal to the group in the foreground.
func (c *Client) Signal(ctx context.Context, id process.ID, sig syscall.Signal, group bool) error {
	_, err := c.call(ctx, proto.Request{Signal: &proto.Signal{ID: string(id), Number: int(sig), Group: group}})
	return err
}

// Kill ends a process and all it started, whatever group that has moved to.
func (c *Client) Kill(ctx context.Context, id process.ID) error {
	_, err := c.call(ctx, proto.Request{Kill: &proto.Name{ID: string(id)}})
	return err
}

// Discard ends a process and all it started, unless it has ended, and drops what is
// kept of it. It takes 5 s at most.
func (c *Client) Discard(ctx context.Context, id process.ID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, discardTime,
		fault.New(fault.Conflict, "the sandbox did not end process %s, and does not answer: destroy the sandbox if this happens again", id))
	defer cancel()
	if err := c.Kill(ctx, id); err != nil && fault.KindOf(err) != fault.Conflict { // it has ended
		return err
	}
	if _, err := c.Wait(ctx, id); err != nil {
		return err
	}
	return c.Forget(ctx, id)
}

const discardTime = 5 * time.Second

// KillAll ends every program in the sandbox, those included that programs have started.
func (c *Client) KillAll(ctx context.Context) error {
	_, err := c.call(ctx, proto.Request{KillAll: &proto.Empty{}})
	return err
}

// EndLargest ends the program in the sandbox that has the most memory, and returns how
// many bytes that was. An older guest daemon refuses with fault.Invalid.
func (c *Client) EndLargest(ctx context.Context) (int64, error) {
	r, err := c.call(ctx, proto.Request{EndLargest: &proto.Empty{}})
	if err != nil {
		return 0, err
	}
	return r.Size, nil
}

// Forget drops what is kept of a process that has ended.
func (c *Client) Forget(ctx context.Context, id process.ID) error {
	_, err := c.call(ctx, proto.Request{Forget: &proto.Name{ID: string(id)}})
	return err
}

// Output is the output of a process, as it comes. One goroutine at a time may
// use it, but Close may be called at any time.
type Output struct {
	closing
	process process.Info
	reply   proto.Type // what the guest daemon waits to hear when the end was read; 0 for nothing
	ends    bool       // proto.Last does it, too
	last    bool       // it has come
	at      int64
	exit    process.Exit
	refused error // instead of an exit
	err     error
}

func (c *Client) output(ctx context.Context, q proto.Request, at int64) (process.Output, error) {
	x, r, err := c.begin(ctx, q)
	if err != nil {
		return nil, err
	}
	p, err := infoOf(r.Process)
	if err != nil {
		return nil, x.failed(err)
	}
	x.waitWithoutLimit()
	o := &Output{closing: closing{x: x}, process: p, at: min(at, math.MaxInt64)}
	switch {
	case q.Start != nil:
		o.reply = proto.Taken
	case q.Converse != nil:
		o.reply, o.ends = proto.Enough, r.Ends
	}
	return o, nil
}

// Process is what it was when Run or Follow was answered.
func (o *Output) Info() process.Info { return o.process }

// Next returns the next piece of output. After the last one, when the process has
// ended, it returns io.EOF, and Exit says how.
func (o *Output) Next() (process.Chunk, error) {
	if o.err != nil {
		return process.Chunk{}, o.err
	}
	chunk, err := o.next()
	switch {
	case err == io.EOF:
		o.err = o.finish(o.end)
	case err == process.ErrEnough:
		o.err = o.finish(func() error { o.x.finish(); return err })
	case err != nil:
		o.err = o.finish(func() error { return o.x.failed(err) })
	}
	return chunk, o.err
}

func (o *Output) next() (process.Chunk, error) {
	t, err := o.x.Conn.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return process.Chunk{}, err
	}
	switch t {
	case proto.Output:
		b, err := o.x.Payload()
		if err != nil {
			return process.Chunk{}, err
		}
		stream, at, dropped, ok := proto.TakeOutput(b)
		if !ok || at != o.at+dropped {
			return process.Chunk{}, fmt.Errorf("%w: output at %d, %d of it lost, where %d follows", ErrProtocol, at, dropped, o.at)
		}
		data := b[proto.OutputSize:]
		o.at = at + int64(len(data))
		o.last = o.ends && process.Stream(stream) == process.Control && bytes.HasSuffix(data, []byte(proto.Last))
		return process.Chunk{Seq: process.Seq(o.at), Stream: process.Stream(stream), Data: data, Dropped: dropped}, nil
	case proto.End:
		var e proto.Closing
		if err := o.x.Decode(&e); err != nil {
			return process.Chunk{}, err
		}
		if e.Error != nil && o.reply == proto.Enough {
			o.refused = refusal(e.Error)
			return process.Chunk{}, io.EOF
		}
		if o.last && e == (proto.Closing{}) {
			return process.Chunk{}, process.ErrEnough
		}
		if o.exit, err = exitOf(e.Exit); err != nil {
			return process.Chunk{}, err
		}
		return process.Chunk{}, io.EOF
	}
	return process.Chunk{}, fmt.Errorf("%w: a frame of type %d among output", ErrProtocol, t)
}

// end ends the exchange when the end of the process was read.
func (o *Output) end() error {
	end := io.EOF
	if o.refused != nil {
		end = o.refused
	}
	if o.reply != 0 {
		o.x.line.setLimit(o.x.client.timeouts.Silence, false)
		o.x.Put(o.reply, nil)
		if err := o.x.Flush(); err != nil {
			o.x.drop() // whether a process is forgotten is the guest daemon's then
			return end
		}
	}
	o.x.finish()
	return end
}

// Enough ends the output of Converse early, as Close does, but leaves the
// connection to the next request. Nothing is waited for.
func (o *Output) Enough() {
	_ = o.finish(func() error {
		o.err = io.ErrClosedPipe
		if o.reply != proto.Enough {
			o.x.drop()
			return nil
		}
		o.x.line.setLimit(goodbye, false)
		if !o.last {
			o.x.Put(proto.Enough, nil)
		}
		// From here on ctx has no say: its end may be why there was enough.
		switch {
		case !o.x.stop() || o.x.Flush() != nil:
			o.x.client.drop(o.x.Conn)
		case o.last && o.x.Waiting():
			o.settle()
		case !o.x.client.while(o.settle):
			o.x.client.drop(o.x.Conn)
		}
		return nil
	})
}

// settle passes over what comes until the guest daemon has heard that it is enough.
func (o *Output) settle() {
	c, conn := o.x.client, o.x.Conn
	for left := 2 * MaxRing; left > 0; {
		t, err := conn.Next()
		if err != nil {
			c.drop(conn)
			return
		}
		if t == proto.Output {
			left -= conn.Left() + proto.HeaderSize
			continue
		}
		var e proto.Closing
		if t != proto.End || conn.Decode(&e) != nil {
			break
		}
		c.release(conn)
		return
	}
	c.drop(conn)
	c.fail(fmt.Errorf("%w: no end, where enough was said", ErrProtocol))
}

// Exit is the end of the process, once Next has returned io.EOF.
func (o *Output) Exit() process.Exit { return o.exit }
