package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// maxQueued is how many bytes of one log may be on their way before Append
// blocks.
const maxQueued = 4 * execution.MaxChunk

// ErrNoLog says that an execution has no log and no executor has it: its record
// says how it ended, or it is being taken over.
var ErrNoLog = execution.ErrNoLog

// Log implements execution.LogReader and execution.LogWriter.
type Log struct {
	b       *Bus
	js      jetstream.JetStream // on the connection for data
	stream  jetstream.Stream
	senders sync.WaitGroup // they end when the bus is closed
	shares  *shares

	acks  string // what the subjects of acknowledgements begin with
	heard chan *nats.Msg

	attending sync.Mutex                    // taken before mu
	subs      map[string]*nats.Subscription // guarded by attending: of logs that have readers

	mu      sync.Mutex
	pipes   map[string]*pipe
	readers map[string][]*follower // guarded by mu, by trace id; replaced, not changed
}

var (
	_ execution.LogReader = (*Log)(nil)
	_ execution.LogWriter = (*Log)(nil)
)

// pipe is the way of one execution's events into its log. One message at a
// time is on its way, so that the order holds whatever has to be sent again;
// what is appended meanwhile goes together into the next.
type pipe struct {
	l       *Log
	traceID string
	tenant  string // "" if it is not known
	kept    *kept  // guarded by shares.mu

	mu      sync.Mutex
	change  chan struct{} // closed and replaced when anything below has changed and a goroutine waits
	waiting bool
	queue   []*batch // the first is on its way while sending
	queued  int      // bytes of data in queue
	sending bool
	flight  flight // while sending, unless a goroutine of its own sends
	next    int64  // seq of the next event; 0 before the first
	stored  int64  // seq of the last event stored
	err     error  // why no more is taken

	// For the end to say whether events have left the log.
	began   time.Time
	resumed bool // there were events before this process's first
	cut     bool // events were purged, or never stored
	bytes   int64
	sizes   []int64 // bytes of each message stored, for the cap
}

// batch is a message of events.
type batch struct {
	b    []byte
	data int // bytes of data in it
	last int64
}

func (l *Log) pipe(traceID string) *pipe {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pipes[traceID]
	if p == nil {
		p = &pipe{l: l, traceID: traceID, tenant: l.b.tenantOf(traceID), change: make(chan struct{}), stored: 1, began: time.Now()}
		l.pipes[traceID] = p
	}
	return p
}

// Append implements execution.LogWriter. An error says that this log takes no
// more events; the execution goes on and its Result says OutputTruncated.
func (l *Log) Append(traceID string, events []execution.Event) error {
	if len(events) == 0 {
		return nil
	}
	if !isToken(traceID) {
		return fmt.Errorf("trace id %q cannot be part of a subject", traceID)
	}
	return l.pipe(traceID).append(events)
}

func (p *pipe) append(events []execution.Event) error {
	size := 0
	for i := range events {
		if events[i].Seq != events[0].Seq+int64(i) || events[i].Seq < 2 {
			return fmt.Errorf("append to a log: event %d follows %d", events[i].Seq, events[0].Seq+int64(i)-1)
		}
		size += len(events[i].Data)
	}
	if size > execution.MaxChunk {
		return fmt.Errorf("append to a log: %d bytes are more than %d", size, execution.MaxChunk)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.queued > 0 && p.queued+size > maxQueued {
		if !p.wait(p.l.b.closed) {
			return errClosed
		}
	}
	if p.err != nil {
		return p.err
	}
	first := events[0].Seq
	if p.next != 0 && first != p.next {
		return fmt.Errorf("append to a log: event %d follows %d", first, p.next-1)
	}
	if p.next == 0 {
		p.resumed = first > 2
	}
	p.next = first + int64(len(events))
	bt := p.room(size)
	if bt == nil {
		bt = &batch{b: beginEvents(make([]byte, 0, size+4*len(events)+16), first)}
		p.queue = append(p.queue, bt)
	}
	for i := range events {
		bt.b = appendEvent(bt.b, streamCode(events[i].Stream), events[i].Data)
	}
	bt.data += size
	bt.last = p.next - 1
	p.queued += size
	if !p.sending {
		p.sending = true
		p.launch()
	}
	return nil
}

// room is the batch that waits at the end of the queue, if it has room.
func (p *pipe) room(size int) *batch {
	n := len(p.queue)
	if n == 0 || n == 1 && p.sending || p.queue[n-1].data+size > execution.MaxChunk {
		return nil
	}
	return p.queue[n-1]
}

func streamCode(s execution.Stream) uint64 {
	switch s {
	case execution.Stdout:
		return stdoutCode
	case execution.Stderr:
		return stderrCode
	case runEvent:
		return runEventCode
	default:
		return keepaliveCode
	}
}

var errClosed = errors.New("the bus is closed")

// wait waits for a change, and reports whether there was one. mu is held, and
// let go of meanwhile.
func (p *pipe) wait(ctx context.Context) bool {
	change := p.change
	p.waiting = true
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-change:
		return true
	case <-ctx.Done():
		return false
	}
}

// changed wakes those who wait. mu is held.
func (p *pipe) changed() {
	if p.waiting {
		p.waiting = false
		close(p.change)
		p.change = make(chan struct{})
	}
}

// send stores what is queued, and ends when there is nothing left. It tries again what
// fails.
func (p *pipe) send() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.err == nil {
		bt := p.queue[0]
		p.mu.Unlock()
		err := p.l.b.store(p.l.b.closed, p.l.b.data, &nats.Msg{Subject: p.l.b.names.log + p.traceID, Data: bt.b})
		p.mu.Lock()
		if err != nil {
			p.fail(err)
			break
		}
		if p.took() {
			p.tend()
		}
		p.changed()
	}
	p.sending = false
	p.changed()
}

// took notes that the first batch is stored, and reports whether tend is due. mu is held.
func (p *pipe) took() (due bool) {
	bt := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	p.queued -= bt.data
	p.stored = bt.last
	return p.account(int64(len(bt.b)))
}

// fail ends the log. mu is held.
func (p *pipe) fail(err error) {
	p.err, p.cut = err, true
	p.queue, p.queued = nil, 0
	if p.l.b.closed.Err() == nil {
		p.l.b.cfg.Log.Error("cannot store output; its log ends here", "trace_id", p.traceID, "error", err)
	}
}

// Stored returns the seq of the last event that is known to be stored of those
// this process has appended: what came before it cannot be lost by the end of
// any process. It is 1 if there is none.
func (l *Log) Stored(traceID string) int64 {
	p := l.written(traceID)
	if p == nil {
		return 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored
}

// Finish implements execution.LogWriter. It sets OutputTruncated in what it
// stores when events have left the log. A gateway may call it too, for a run
// that is lost: followers hear of it, and it goes the way of every Result.
func (l *Log) Finish(ctx context.Context, r execution.Result) error {
	if !isToken(r.TraceID) {
		return fmt.Errorf("trace id %q cannot be part of a subject", r.TraceID)
	}
	p := l.written(r.TraceID)
	if p != nil {
		truncated, err := p.end(ctx)
		if err != nil {
			return err
		}
		r.OutputTruncated = r.OutputTruncated || truncated
	} else if r.LastSeq > 1 {
		r.OutputTruncated = r.OutputTruncated || l.truncated(ctx, r.TraceID)
	}
	gateway := anyGateway
	if g, ok := l.b.origins.Load(r.TraceID); ok {
		gateway = g.(string)
	}
	msg := encodeEnd(&r)
	ended := make(chan error, 1)
	go func() { ended <- l.b.store(ctx, l.b.data, &nats.Msg{Subject: l.b.names.log + r.TraceID, Data: msg}) }()
	err := l.b.store(ctx, l.b.ctl, &nats.Msg{Subject: l.b.names.result + gateway + "." + r.TraceID, Data: msg, Header: l.b.headers(ctx, r.TraceID)})
	if err = errors.Join(err, <-ended); err != nil {
		return unavailable(err)
	}
	if l.shares.end(p, r.TraceID, l.b.tenantOf(r.TraceID), size(int64(len(msg)))) {
		l.shares.relieve()
	}
	l.mu.Lock()
	delete(l.pipes, r.TraceID)
	l.mu.Unlock()
	return nil
}

// end waits until everything is stored, and reports whether the log lacks
// something.
func (p *pipe) end(ctx context.Context) (truncated bool, err error) {
	p.mu.Lock()
	for p.sending {
		if !p.wait(ctx) {
			p.mu.Unlock()
			return false, unavailable(context.Cause(ctx))
		}
	}
	cut := p.cut
	// What others have written may have driven it out, but not of a short log.
	look := p.resumed || p.bytes > 1<<20 || time.Since(p.began) > time.Minute
	p.mu.Unlock()
	return cut || look && p.l.truncated(ctx, p.traceID), nil
}

// truncated reports whether the first events have left the log.
func (l *Log) truncated(ctx context.Context, traceID string) bool {
	e, _, err := l.get(ctx, traceID, 1)
	return err != nil || e.first() > 2
}

// flush waits a moment for everything appended to be stored.
func (l *Log) flush(d time.Duration) {
	ctx, cancel := context.WithTimeout(l.b.closed, d)
	defer cancel()
	for _, p := range l.all() {
		p.mu.Lock()
		for p.sending && p.wait(ctx) {
		}
		p.mu.Unlock()
	}
}
