package initclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// run is a run the guest still owes an end of.
type run struct {
	end chan ending // one is sent

	server *server // nil when its program cannot ask; set before the first frame, or in adopt

	// firstHeld is the number of the first frame in held, 0 when there is none.
	firstHeld atomic.Uint64

	mu      sync.Mutex   // never taken under Client.mu
	sink    Sink         // guarded by mu
	waiting bool         // guarded by mu; it has no sink yet
	found   bool         // an earlier host began it
	held    []wire.Frame // guarded by mu; until someone has attached
	heldLen int          // guarded by mu; bytes
	limit   int64        // guarded by mu; bytes per stream, -1 when not known
	at      [2]uint64    // guarded by mu; offset of the next byte of each stream
	known   [2]bool      // guarded by mu; whether at is
	skip    [2]uint64    // guarded by mu; bytes the attached sink has already
}

type ending struct {
	result Result
	err    error
}

// newRun returns a run; with a limit of -1 it is one that was found.
func newRun(sink Sink, limit int64) *run {
	r := &run{end: make(chan ending, 1), sink: sink, limit: limit, waiting: limit < 0, found: limit < 0}
	if limit >= 0 {
		r.known = [2]bool{true, true}
	}
	return r
}

// maxHeld bounds what is kept for a run until someone attaches: the guest can
// have no more than its spool unacknowledged.
const maxHeld = wire.Spool + 128<<10

// take deals with a frame of the run. Its last gives its end, for the caller to
// send.
func (r *run) take(f wire.Frame) (*ending, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting {
		if r.heldLen += len(f.Payload) + wire.HeaderSize; r.heldLen > maxHeld {
			return nil, violation("more unacknowledged output than a guest keeps")
		}
		f.Payload = slices.Clone(f.Payload)
		r.held = append(r.held, f)
		r.firstHeld.CompareAndSwap(0, f.Seq)
		return nil, nil
	}
	return r.deliver(f)
}

// deliver passes output on and returns the end. r.mu is held.
func (r *run) deliver(f wire.Frame) (*ending, error) {
	switch f.Type {
	case wire.Stdout, wire.Stderr:
		return nil, r.output(f)
	case wire.Ask:
		switch {
		case r.server != nil:
			return nil, r.server.take(f)
		case r.found: // it may have been allowed to
			return nil, nil
		}
		return nil, violation("a request of a run that may make none")
	case wire.Refused:
		var m wire.ReplyMessage
		if !m.Decode(f.Payload) {
			return nil, violation("malformed Refused")
		}
		return &ending{err: fmt.Errorf("%w: %w", ErrNotStarted, &Error{Op: "run", Msg: m.Error})}, nil
	}
	var m wire.ExitMessage
	if !m.Decode(f.Payload) || m.Code > 255 || m.Signal > 127 || m.Signal != 0 && m.Code != 128+m.Signal ||
		m.Stdout < r.at[0] || m.Stdout > math.MaxInt64 || m.Stderr < r.at[1] || m.Stderr > math.MaxInt64 ||
		m.PeakRSS > math.MaxInt64 || m.CPU > math.MaxInt64 || len(m.Blocked) > maxRule {
		return nil, violation("malformed Exit")
	}
	return &ending{result: Result{
		ExitCode:    int(m.Code),
		Signal:      int(m.Signal),
		TimedOut:    m.TimedOut,
		StdoutBytes: int64(m.Stdout),
		StderrBytes: int64(m.Stderr),
		PeakRSS:     int64(m.PeakRSS),
		CPU:         time.Duration(m.CPU),
		Warm:        m.Warm,
		DiskFull:    m.DiskFull,
		TasksFull:   m.TasksFull,
		Blocked:     m.Blocked,
	}}, nil
}

func (r *run) output(f wire.Frame) error {
	offset, data, ok := output(f)
	s := Stdout
	if f.Type == wire.Stderr {
		s = Stderr
	}
	if r.known[s] && offset != r.at[s] || offset > math.MaxInt64 || !ok {
		return violation("output at %d where %d follows", offset, r.at[s])
	}
	r.known[s] = true
	r.at[s] = offset + uint64(len(data))
	if r.limit >= 0 && r.at[s] > uint64(r.limit) {
		return violation("more output than was asked for")
	}
	if offset < r.skip[s] {
		data = data[min(uint64(len(data)), r.skip[s]-offset):]
	}
	if r.sink != nil && len(data) > 0 {
		r.sink(s, data)
	}
	return nil
}

// Run runs a program and passes its output to sink until it ends. An error that
// wraps ErrNotStarted says that nothing was run. When ctx ends first, Run returns
// its cause and the program goes on, unheard: Kill ends it, and what it writes
// meanwhile is dropped. To leave it to another Client, call Leave or Close: then
// Run returns ErrClosed, and what sink has not got is kept.
func (c *Client) Run(ctx context.Context, spec RunSpec, sink Sink) (Result, error) {
	id := spec.ID
	if id == 0 {
		id = NewRunID()
	}
	m := wire.RunMessage{
		Command: spec.Command.wire(),
		Warm:    spec.Warm,
		Timeout: uint64(max(spec.Timeout, 0)),
		Output:  uint64(max(spec.OutputLimit, 0)),
		Stdin:   spec.Stdin,
		Port:    uint64(spec.Port),
	}
	for _, f := range spec.Files {
		m.Files = append(m.Files, wire.File{Path: f.Path, Mode: uint64(f.Mode.Perm()), Data: f.Data})
	}
	body := m.Append(nil)
	if len(body) > wire.MaxMessage {
		return Result{}, fmt.Errorf("run: %w: %d bytes of files and variables are more than %d", ErrNotStarted, len(body), wire.MaxMessage)
	}
	r := newRun(sink, max(spec.OutputLimit, 0))
	if spec.Port > 0 {
		r.server = newServer(c, id, spec.Serve)
		defer r.server.stop()
	}
	c.mu.Lock()
	if c.runs[id] != nil {
		c.mu.Unlock()
		return Result{}, fmt.Errorf("run: %w: %d is taken", ErrNotStarted, id)
	}
	c.runs[id] = r
	c.mu.Unlock()
	if err := c.send.send(ctx, wire.Frame{Type: wire.Run, ID: uint64(id), Payload: body}, c.ackPrefix); err != nil {
		r.mute()
		return Result{}, fmt.Errorf("run: %w", c.because(err))
	}
	return c.wait(ctx, r)
}

// Attach takes over a run of Info().Runs, which an earlier process started. skip
// are the bytes of each stream that are known already and are not to be passed
// on again. serve answers its requests if it may make some; nil drops them. It returns as
// Run does.
func (c *Client) Attach(ctx context.Context, id RunID, skip map[Stream]int64, sink Sink, serve Serve) (Result, error) {
	var asked *server
	if serve != nil {
		asked = newServer(c, id, serve)
		defer asked.stop()
	}
	r, ended, err := c.attach(id, skip, sink, asked)
	if err != nil {
		return Result{}, err
	}
	if ended { // as in take: the caller has to make use of it first
		return c.wait(ctx, r)
	}
	// The guest may stand still with a full spool until it hears of this.
	if err := c.acknowledge(ctx); err != nil {
		r.mute()
		return Result{}, c.because(err)
	}
	return c.wait(ctx, r)
}

// Discard drops a run of Info().Runs: its output and its end are not kept.
func (c *Client) Discard(ctx context.Context, id RunID) error {
	if _, _, err := c.attach(id, nil, nil, nil); err != nil {
		return err
	}
	return c.acknowledge(ctx)
}

// attach makes sink the run's and delivers what was held for it; ended says that
// its end was.
func (c *Client) attach(id RunID, skip map[Stream]int64, sink Sink, asked *server) (_ *run, ended bool, err error) {
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	if r == nil {
		return nil, false, ErrNoRun
	}
	end, err := r.adopt(skip, sink, asked)
	if end != nil {
		c.mu.Lock()
		delete(c.runs, id)
		c.mu.Unlock()
		r.end <- *end
	}
	if errors.Is(err, ErrProtocol) {
		c.fail(err)
	}
	return r, end != nil, err
}

// adopt gives the run its sink, and returns its end if that was held.
func (r *run) adopt(skip map[Stream]int64, sink Sink, asked *server) (end *ending, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waiting {
		return nil, ErrNoRun
	}
	for s, n := range skip {
		r.skip[s&1] = uint64(max(n, 0))
	}
	r.sink, r.server, r.waiting = sink, asked, false
	for _, f := range r.held {
		if end, err = r.deliver(f); end != nil || err != nil {
			break
		}
	}
	r.held, r.heldLen = nil, 0
	r.firstHeld.Store(0)
	return end, err
}

func (c *Client) wait(ctx context.Context, r *run) (Result, error) {
	select {
	case e := <-r.end:
		return e.result, e.err
	case <-ctx.Done():
		r.mute()
	case <-c.done:
	}
	select {
	case e := <-r.end: // it came last
		return e.result, e.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	default:
		return Result{}, fmt.Errorf("run: %w", c.failure())
	}
}

// mute ends the calls of the sink; none is under way when it returns.
func (r *run) mute() {
	r.mu.Lock()
	r.sink = nil
	r.mu.Unlock()
}

// because prefers the reason why the conversation ended to what a write to the
// closed channel had to say.
func (c *Client) because(err error) error {
	select {
	case <-c.done:
		return c.failure()
	default:
		return err
	}
}

// Kill sends a signal to a run's process group. SIGKILL ends everything that
// the run started, whatever group it has moved to.
func (c *Client) Kill(ctx context.Context, id RunID, sig syscall.Signal) error {
	m := wire.KillMessage{Run: uint64(id), Signal: uint64(max(sig, 0))}
	return c.call(ctx, "kill", wire.Kill, m.Append(nil))
}
