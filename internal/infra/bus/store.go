package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

const (
	storeTimeout = 5 * time.Second // for a stream's answer
	// maxRefusals is how often a stream may refuse a message, as when its disk is
	// full, before it is given up. A bus that is away is waited for.
	maxRefusals = 8
)

// store publishes to a stream until the stream says that it has the message.
// The message may be there twice when an answer was lost.
func (b *Bus) store(ctx context.Context, nc *nats.Conn, msg *nats.Msg) error {
	refusals := 0
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		try, cancel := context.WithTimeout(ctx, storeTimeout)
		stop := context.AfterFunc(b.connection(), cancel)
		answer, err := nc.RequestMsgWithContext(try, msg)
		stop()
		cancel()
		if err == nil {
			if acknowledged(answer.Data) {
				return nil
			}
			err = fmt.Errorf("the stream refuses: %s", answer.Data)
			refusals++
		}
		if refusals >= maxRefusals || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// acknowledged reads {"stream":"NAME","seq":17,…}, which a stream answers for
// each message: too often to read it as JSON in general.
func acknowledged(b []byte) bool {
	_, seq, ok := bytes.Cut(b, []byte(`"seq":`))
	if !ok || bytes.Contains(b, []byte(`"error":`)) {
		return false
	}
	seq = bytes.TrimLeft(seq, " 0")
	return len(seq) > 0 && seq[0] >= '1' && seq[0] <= '9'
}

// account counts a stored message, and reports whether tend is due. mu is held.
func (p *pipe) account(n int64) (due bool) {
	p.bytes += n
	p.sizes = append(p.sizes, n)
	if len(p.sizes) > execution.MaxEvents { // the stream has dropped the first
		p.l.shares.add(p, -size(p.sizes[0]))
		p.bytes -= p.sizes[0]
		p.sizes = p.sizes[1:]
		p.cut = true
	}
	return p.l.shares.add(p, size(n)) || p.bytes > p.l.b.cfg.MaxRunBytes
}

// tend purges the log's oldest messages when they are more than one execution may have,
// and looks after the tenants' shares. Purging costs, so a part is purged at a time. mu is
// held, and let go of meanwhile.
func (p *pipe) tend() {
	if most := p.l.b.cfg.MaxRunBytes; p.bytes > most {
		ctx, cancel := context.WithTimeout(p.l.b.closed, storeTimeout)
		defer cancel()
		p.cutTo(ctx, most-most/8)
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	p.l.shares.relieve()
}

// halve purges the older half of a log.
func (p *pipe) halve(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutTo(ctx, p.bytes/2)
}

// cutTo purges a log's oldest messages until the others have at most so many
// bytes; the last stays. mu is held, and let go of meanwhile.
func (p *pipe) cutTo(ctx context.Context, most int64) {
	i, cut := 0, int64(0)
	for p.bytes > most && i < len(p.sizes)-1 {
		p.bytes -= p.sizes[i]
		cut += size(p.sizes[i])
		i++
	}
	if i == 0 {
		return
	}
	p.l.shares.add(p, -cut)
	p.sizes = p.sizes[i:]
	p.cut = true
	// By how many stay, not by where they begin: for the latter the stream reads
	// everything of the log that stays as well, and keeps it in memory.
	keep := uint64(len(p.sizes))
	p.mu.Unlock()
	defer p.mu.Lock()
	err := p.l.stream.Purge(ctx, jetstream.WithPurgeSubject(p.l.b.names.log+p.traceID), jetstream.WithPurgeKeep(keep))
	if err != nil && p.l.b.closed.Err() == nil {
		p.l.b.cfg.Log.Warn("cannot trim a log; the stream's own limits apply", "trace_id", p.traceID, "error", err)
	}
}
