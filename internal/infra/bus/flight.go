package bus

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// flightCheck is how often messages are looked for whose acknowledgement is late.
const flightCheck = time.Second

// flight is a message on its way to the stream whose acknowledgement comes to the log's
// subscription. Thousands of messages a second have no goroutine, timer or subscription of
// their own.
type flight struct {
	number uint64 // of this message of the pipe; its acknowledgement names it
	since  time.Time
	on     bool
}

// launch publishes the first batch of the queue. What is not acknowledged at once is sent
// by a goroutine, which tries again. mu is held, and p.sending true.
func (p *pipe) launch() {
	if p.l.b.closed.Err() == nil {
		p.flight.number++
		reply := p.l.acks + p.traceID + "." + strconv.FormatUint(p.flight.number, 10)
		if err := p.l.b.data.PublishRequest(p.l.b.names.log+p.traceID, reply, p.queue[0].b); err == nil {
			p.flight.since, p.flight.on = time.Now(), true
			return
		}
	}
	p.l.senders.Go(p.send)
}

// acknowledge takes what the stream says of a message, and publishes what was queued
// meanwhile. Then the log's readers look, who have heard it already.
func (l *Log) acknowledge(m *nats.Msg) {
	id, number, _ := strings.Cut(m.Subject[len(l.acks):], ".")
	p, readers := l.pipeAndReaders(id)
	if p == nil {
		return
	}
	p.mu.Lock()
	if !p.flight.on || strconv.FormatUint(p.flight.number, 10) != number {
		p.mu.Unlock()
		return // it was given up
	}
	p.flight.on = false
	switch {
	case !acknowledged(m.Data):
		l.senders.Go(p.send)
	case p.took():
		l.senders.Go(func() {
			p.mu.Lock()
			p.tend()
			p.mu.Unlock()
			p.send()
		})
	case len(p.queue) > 0:
		p.launch()
	default:
		p.sending = false
	}
	p.changed()
	p.mu.Unlock()
	wake(readers)
}

// watch gives up what is not acknowledged for long, until the bus is closed.
func (l *Log) watch() {
	tick := time.NewTicker(flightCheck)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.ground(now.Add(-storeTimeout))
		case <-l.b.closed.Done():
			l.ground(time.Now().Add(time.Hour))
			return
		}
	}
}

// ground has goroutines send what was published before a time and is not acknowledged.
func (l *Log) ground(before time.Time) {
	for _, p := range l.all() {
		p.mu.Lock()
		late := p.flight.on && p.flight.since.Before(before)
		if late {
			p.flight.on = false
			p.l.senders.Go(p.send)
		}
		p.mu.Unlock()
		if late {
			_, readers := l.pipeAndReaders(p.traceID)
			wake(readers)
		}
	}
}

// all are the pipes there are.
func (l *Log) all() []*pipe {
	l.mu.Lock()
	defer l.mu.Unlock()
	pipes := make([]*pipe, 0, len(l.pipes))
	for _, p := range l.pipes {
		pipes = append(pipes, p)
	}
	return pipes
}

// written is the pipe of a log that this process writes, nil if it does not.
func (l *Log) written(id string) *pipe {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pipes[id]
}

// landed waits until the message is stored that is on its way into a log from this process, if
// one is. A reader that has begun to listen behind it does not hear it.
func (l *Log) landed(ctx context.Context, id string) error {
	p := l.written(id)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil
	}
	return p.settled(ctx, p.queue[0].last)
}

// settled waits until an event is stored that this process has appended. A process that
// dies takes along what is not; a reader who had it would find another sequence later.
func (l *Log) settled(ctx context.Context, id string, seq int64) error {
	p := l.written(id)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled(ctx, seq)
}

// settled is that of Log. mu is held, and let go of meanwhile.
func (p *pipe) settled(ctx context.Context, seq int64) error {
	for p.storing(seq) {
		if !p.wait(ctx) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// storing reports whether an event that this process has appended is yet to be stored.
func (l *Log) storing(id string, seq int64) bool {
	p := l.written(id)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.storing(seq)
}

// storing is that of Log. mu is held.
func (p *pipe) storing(seq int64) bool { return p.next > seq && p.stored < seq && p.err == nil }
