package mcpsession

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// events keeps what was sent, for clients whose connection broke, up to a number of bytes
// of all tenants together. When that is reached, the tenant that has most loses its
// oldest: one that has no more than its share loses nothing by others.
//
// The SDK also tells it that a session has ended.
type events struct {
	most     int                                      // bytes
	owner    func(sessionID string) (tenant.ID, bool) // false of a session that is over
	ended    func(sessionID string)
	replayed func(ctx context.Context) // a client asked for events again

	mu       sync.Mutex
	bytes    int                        // guarded by mu
	tenants  map[tenant.ID]*kept        // guarded by mu
	sessions map[string]map[string]*log // guarded by mu; by id, then by the stream's
}

// kept are the events of a tenant.
type kept struct {
	id    tenant.ID
	logs  int
	bytes int
	order list.List // of *event, oldest first
}

// log are the events of a stream that are kept.
type log struct {
	of    *kept
	first int // index of the first of them
	all   []*list.Element
}

type event struct {
	log  *log
	data []byte
}

// eventCost is about what keeping an event takes beside its bytes.
const eventCost = 128

func newEvents(most int, owner func(sessionID string) (tenant.ID, bool), ended func(sessionID string), replayed func(context.Context)) *events {
	return &events{most: most, owner: owner, ended: ended, replayed: replayed, tenants: map[tenant.ID]*kept{}, sessions: map[string]map[string]*log{}}
}

var _ mcp.EventStore = (*events)(nil)

// errSessionOver is of a session that ended meanwhile.
var errSessionOver = errors.New("the session is over")

// Open implements mcp.EventStore.
func (e *events) Open(_ context.Context, sessionID, streamID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	owner, ok := e.owner(sessionID)
	if !ok { // nothing would close it
		return errSessionOver
	}
	streams := e.sessions[sessionID]
	if streams == nil {
		streams = map[string]*log{}
		e.sessions[sessionID] = streams
	}
	if streams[streamID] != nil {
		return nil
	}
	of := e.tenants[owner]
	if of == nil {
		of = &kept{id: owner}
		e.tenants[owner] = of
	}
	of.logs++
	streams[streamID] = &log{of: of}
	return nil
}

// Append implements mcp.EventStore. The newest event is kept however large it is.
func (e *events) Append(_ context.Context, sessionID, streamID string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.sessions[sessionID][streamID]
	if l == nil {
		return errSessionOver
	}
	for e.bytes > e.most {
		e.drop()
	}
	one := &event{l, data}
	l.all = append(l.all, l.of.order.PushBack(one))
	l.of.bytes += one.cost()
	e.bytes += one.cost()
	return nil
}

func (one *event) cost() int { return len(one.data) + eventCost }

// drop forgets the oldest event of the tenant that has most. e.mu is held.
func (e *events) drop() {
	var largest *kept
	for _, of := range e.tenants {
		if largest == nil || of.bytes > largest.bytes {
			largest = of
		}
	}
	l := largest.order.Front().Value.(*event).log // the oldest of a tenant is the first of its stream
	e.forget(l.all[0])
	l.all[0] = nil
	l.all = l.all[1:]
	l.first++
}

// forget takes an event off its tenant. e.mu is held.
func (e *events) forget(at *list.Element) {
	one := at.Value.(*event)
	of := one.log.of
	of.order.Remove(at)
	of.bytes -= one.cost()
	e.bytes -= one.cost()
}

// After implements mcp.EventStore. The stream waits for an event or continues with what it
// returns, so its head can be sent.
func (e *events) After(ctx context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		all, err := e.after(sessionID, streamID, index)
		if err != nil {
			yield(nil, err)
			return
		}
		e.replayed(ctx)
		for _, data := range all {
			if !yield(data, nil) {
				return
			}
		}
	}
}

func (e *events) after(sessionID, streamID string, index int) (out [][]byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.sessions[sessionID][streamID]
	switch {
	case l == nil:
		return nil, fmt.Errorf("there is no stream %.40q in this session", streamID)
	case index+1 < l.first:
		return nil, fmt.Errorf("after event %d of %.40q: %w", index, streamID, mcp.ErrEventsPurged)
	}
	for _, at := range l.all[min(index+1-l.first, len(l.all)):] {
		out = append(out, at.Value.(*event).data)
	}
	return out, nil
}

// SessionClosed implements mcp.EventStore.
func (e *events) SessionClosed(_ context.Context, sessionID string) error {
	e.ended(sessionID)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.sessions[sessionID] {
		for _, at := range l.all {
			e.forget(at)
		}
		if l.of.logs--; l.of.logs == 0 {
			delete(e.tenants, l.of.id)
		}
	}
	delete(e.sessions, sessionID)
	return nil
}
