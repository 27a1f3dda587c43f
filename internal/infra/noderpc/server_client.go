package noderpc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// clientState is what a server keeps for a client, over all of its connections.
type clientState struct {
	s   *Server
	key clientKey
	ctx context.Context // ends when the server drops the client
	end context.CancelFunc

	mu         sync.Mutex
	conn       *serverConn            // guarded by mu; nil after a cut
	expiry     *time.Timer            // guarded by mu; drops the client
	dropped    bool                   // guarded by mu
	handles    map[uint64]*servedUse  // guarded by mu
	tombs      map[uint64]bool        // guarded by mu; closed before the server received Use
	outputs    map[uint64]*keptOutput // guarded by mu
	lastOutput uint64                 // guarded by mu
	processed  uint64                 // guarded by mu; the last notice
	changed    chan struct{}          // guarded by mu; closed and replaced after a notice
}

// servedUse is a handle of a client.
type servedUse struct {
	h      sandbox.Handle // set before ready is closed, nil if Use failed
	ready  chan struct{}
	closed chan struct{} // the client has closed it
	ended  bool          // guarded by clientState.mu
}

func newClientState(s *Server, key clientKey, processed uint64) *clientState {
	st := &clientState{
		s: s, key: key, processed: processed, changed: make(chan struct{}),
		handles: map[uint64]*servedUse{}, tombs: map[uint64]bool{}, outputs: map[uint64]*keptOutput{},
	}
	st.ctx, st.end = context.WithCancel(context.Background())
	return st
}

// detach takes note of the end of a connection. The client has until the end of the grace period to
// open another one.
func (st *clientState) detach(k *serverConn) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.conn != k || st.dropped {
		return
	}
	st.conn = nil
	after := st.s.grace
	if len(st.handles) == 0 && len(st.outputs) == 0 {
		after = 0
	}
	st.expiry = time.AfterFunc(after, st.expire)
}

func (st *clientState) expire() {
	st.s.mu.Lock()
	st.mu.Lock()
	if st.conn != nil || st.s.clients[st.key] != st {
		st.mu.Unlock()
		st.s.mu.Unlock()
		return
	}
	delete(st.s.clients, st.key)
	st.mu.Unlock()
	st.s.mu.Unlock()
	st.drop()
}

// drop closes everything that the server keeps for the client.
func (st *clientState) drop() {
	st.s.mu.Lock()
	if st.s.clients[st.key] == st {
		delete(st.s.clients, st.key)
	}
	st.s.mu.Unlock()
	st.mu.Lock()
	st.dropped = true
	if st.expiry != nil {
		st.expiry.Stop()
	}
	handles, outputs, conn := slices.Collect(maps.Values(st.handles)), slices.Collect(maps.Values(st.outputs)), st.conn
	clear(st.handles)
	st.mu.Unlock()
	st.end()
	if conn != nil {
		conn.conn.Close()
	}
	for _, o := range outputs {
		o.close()
	}
	for _, u := range handles {
		u.close()
	}
}

// close closes a handle that is no longer in clientState.handles. For a pending one, use does it.
func (u *servedUse) close() {
	close(u.closed)
	select {
	case <-u.ready:
		if u.h != nil {
			u.h.Close()
		}
	default:
	}
}

// use opens a handle under the number that the client has chosen. A repeated call returns the handle
// of the first call.
func (st *clientState) use(ctx context.Context, id uint64, open func() (sandbox.Handle, error)) (sandbox.Handle, error) {
	for {
		st.mu.Lock()
		u := st.handles[id]
		switch {
		case st.dropped || st.tombs[id]:
			delete(st.tombs, id)
			st.mu.Unlock()
			return nil, context.Canceled
		case u == nil && len(st.handles) >= maxHandles:
			st.mu.Unlock()
			return nil, errHandles
		case u == nil:
			u = &servedUse{ready: make(chan struct{}), closed: make(chan struct{})}
			st.handles[id] = u
			st.mu.Unlock()
			return st.opened(id, u, open)
		}
		st.mu.Unlock()
		select {
		case <-u.ready:
			if u.h != nil {
				return u.h, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (st *clientState) opened(id uint64, u *servedUse, open func() (sandbox.Handle, error)) (h sandbox.Handle, err error) {
	defer func() { // also if open panics
		st.mu.Lock()
		defer st.mu.Unlock()
		u.h = h
		kept := st.handles[id] == u
		if kept && h == nil {
			delete(st.handles, id)
		}
		close(u.ready)
		if h == nil {
			return
		}
		if !kept {
			h.Close()
			h, err = nil, context.Canceled
			return
		}
		st.s.running.Go(func() { st.watch(id, u) })
	}()
	return open()
}

// watch reports the end of a handle's sandbox to the client.
func (st *clientState) watch(id uint64, u *servedUse) {
	select {
	case <-u.h.Done():
	case <-u.closed:
		return
	}
	st.mu.Lock()
	u.ended = true
	conn := st.conn
	st.mu.Unlock()
	if conn != nil {
		conn.tell(message{Ended: id})
	}
}

// tellEnded reports the handles whose sandboxes ended while the client had no connection.
func (st *clientState) tellEnded(k *serverConn) {
	st.mu.Lock()
	var all []uint64
	for id, u := range st.handles {
		if u.ended {
			all = append(all, id)
		}
	}
	st.mu.Unlock()
	for _, id := range all {
		k.tell(message{Ended: id})
	}
}

// handle returns an open handle.
func (st *clientState) handle(id uint64) (sandbox.Handle, error) {
	st.mu.Lock()
	u := st.handles[id]
	st.mu.Unlock()
	if u == nil {
		return nil, errNoHandle
	}
	select {
	case <-u.ready:
		if u.h != nil {
			return u.h, nil
		}
	default:
	}
	return nil, errNoHandle
}

// notice processes a notice, once.
func (st *clientState) notice(k *serverConn, n notice) {
	st.mu.Lock()
	if n.Seq <= st.processed || st.conn != k {
		st.mu.Unlock()
		return
	}
	u, o := st.handles[n.Handle], st.outputs[n.Output]
	if n.Close && n.Output == 0 {
		delete(st.handles, n.Handle)
		if u == nil {
			if len(st.tombs) >= maxHandles {
				clear(st.tombs)
			}
			st.tombs[n.Handle] = true
		}
	}
	st.mu.Unlock()
	switch {
	case o != nil && n.Close:
		o.close()
	case o != nil:
		o.retain(k)
	case u != nil && n.Close:
		u.close()
	}
	if u != nil && !n.Close && n.Bytes > 0 {
		select {
		case <-u.ready:
			if u.h != nil {
				u.h.CountBytes(n.Bytes)
			}
		default:
		}
	}
	st.mu.Lock()
	st.processed = n.Seq
	close(st.changed)
	st.changed = make(chan struct{})
	st.mu.Unlock()
}

// after waits until the server has processed a notice.
func (st *clientState) after(ctx context.Context, seq uint64) error {
	for {
		st.mu.Lock()
		done, changed := st.processed >= seq, st.changed
		st.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the call was canceled before it ran")
		}
	}
}
