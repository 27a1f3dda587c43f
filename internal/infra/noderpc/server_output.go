package noderpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// keptOutput reads the output of a process for a client. It keeps the pieces that the client has not
// acknowledged, so the client can resume after a cut.
type keptOutput struct {
	st  *clientState
	id  uint64
	o   process.Output
	end context.CancelFunc

	mu       sync.Mutex
	pieces   []message     // guarded by mu
	first    uint64        // guarded by mu; number of pieces[0], or of the next piece
	size     int           // guarded by mu; bytes in pieces
	closed   bool          // guarded by mu
	attached *call         // guarded by mu; the call that sends the pieces
	expiry   *time.Timer   // guarded by mu; closes an output that the client does not resume
	keeper   *serverConn   // guarded by mu; on which the client has asked to keep it
	changed  chan struct{} // guarded by mu; closed and replaced after a change
}

// pieceCost is added to the size of each kept piece.
const pieceCost = 256

// keep opens an output for the client, and reads it until the client or the server closes it.
func (st *clientState) keep(ctx context.Context, open func(context.Context) (process.Output, error)) (*keptOutput, error) {
	life, end := context.WithCancel(st.ctx)
	if deadline, ok := ctx.Deadline(); ok {
		inner := end
		var stop context.CancelFunc
		life, stop = context.WithDeadline(life, deadline)
		end = func() { stop(); inner() }
	}
	stop := context.AfterFunc(ctx, end) // until the call is answered
	o, err := open(life)
	stop()
	if err != nil {
		end()
		return nil, err
	}
	k := &keptOutput{st: st, o: o, end: end, first: 1, changed: make(chan struct{})}
	st.mu.Lock()
	dropped := st.dropped || len(st.outputs) >= 2*maxCalls
	if !dropped {
		st.lastOutput++
		k.id = st.lastOutput
		st.outputs[k.id] = k
	}
	st.mu.Unlock()
	if dropped {
		end()
		o.Close()
		return nil, errNoOutput
	}
	st.s.running.Go(k.read)
	return k, nil
}

// notify wakes the goroutines that wait for a change. Callers hold mu.
func (k *keptOutput) notify() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// read reads the output to its end.
func (k *keptOutput) read() {
	for {
		k.mu.Lock()
		full, closed, changed := k.size >= maxOutput, k.closed, k.changed
		k.mu.Unlock()
		switch {
		case closed:
			return
		case full:
			<-changed
			continue
		}
		chunk, err := k.o.Next()
		var m message
		if err == nil {
			chunk.Data = slices.Clone(chunk.Data)
			m.Chunk = &chunk
		} else {
			m.Err = remote.EncodeError(err)
			if errors.Is(err, io.EOF) {
				exit := k.o.Exit()
				m.Exit = &exit
			}
		}
		k.mu.Lock()
		m.Number = k.first + uint64(len(k.pieces))
		k.pieces = append(k.pieces, m)
		k.size += len(chunk.Data) + pieceCost
		k.notify()
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ack forgets the pieces up to a number.
func (k *keptOutput) ack(number uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.pieces) > 0 && k.first <= number {
		if c := k.pieces[0].Chunk; c != nil {
			k.size -= len(c.Data)
		}
		k.size -= pieceCost
		k.pieces[0] = message{}
		k.pieces = k.pieces[1:]
		k.first++
	}
	k.notify()
}

// attach makes c the call that sends the pieces.
func (k *keptOutput) attach(c *call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attached = c
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
	k.notify()
}

// detach takes note of the end of c's connection. The client has until the end of the grace period to
// resume.
func (k *keptOutput) detach(c *call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.attached != c || k.closed {
		return
	}
	k.attached = nil
	if k.keeper == nil || k.keeper == c.k {
		k.expiry = time.AfterFunc(k.st.s.grace, k.close)
	}
	k.notify()
}

// retain keeps the output as long as the connection exists, even if the client does not read it.
func (k *keptOutput) retain(conn *serverConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keeper = conn
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
}

// send sends the pieces from a number on, until c is no longer attached or its stream fails.
func (k *keptOutput) send(c *call, from uint64) {
	for {
		k.mu.Lock()
		if k.attached != c || k.closed {
			k.mu.Unlock()
			return
		}
		changed := k.changed
		at := int64(from) - int64(k.first)
		if at < 0 { // the client acknowledged what it had not asked for
			k.mu.Unlock()
			return
		}
		if at >= int64(len(k.pieces)) {
			k.mu.Unlock()
			select {
			case <-changed:
			case <-c.ctx.Done():
				return
			}
			continue
		}
		m := k.pieces[at]
		k.mu.Unlock()
		if c.send(m) != nil {
			return
		}
		from++
	}
}

// close ends the output.
func (k *keptOutput) close() {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return
	}
	k.closed = true
	if k.expiry != nil {
		k.expiry.Stop()
	}
	k.notify()
	k.mu.Unlock()
	k.st.mu.Lock()
	delete(k.st.outputs, k.id)
	k.st.mu.Unlock()
	k.end()
	k.o.Close()
}
