package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Keepalive is how often a stream that has nothing to send says that it is alive.
const Keepalive = 15 * time.Second

// Events sends JSON values to one client as they come: as NDJSON, or as server-sent events
// to a client that asks for them. While there are none it sends a keepalive. It is safe
// for concurrent use.
type Events struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	sse  bool
	idle *time.Timer

	mu    sync.Mutex
	alive any    // guarded by mu; the keepalive
	buf   []byte // guarded by mu
	over  bool   // guarded by mu
	err   error  // guarded by mu; the client has gone
}

// Events begins an answer that is a stream; alive is its keepalive. The caller ends it.
func (c *Call) Events(alive any) *Events {
	e := &Events{w: c.W, conn: http.NewResponseController(c.W), sse: Accepts(c.R.Header, EventStream), alive: alive}
	media := NDJSON
	if e.sse {
		media = EventStream
	}
	c.W.Header().Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	c.Start(media)
	_ = e.conn.Flush() // the next value fails if this does
	e.idle = time.AfterFunc(Keepalive, e.keepalive)
	return e
}

func (e *Events) keepalive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.put(e.alive)
	}
}

// Send sends a value.
func (e *Events) Send(v any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(v)
	return e.err
}

// SetKeepalive replaces the keepalive.
func (e *Events) SetKeepalive(alive any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive = alive
}

// put writes a value. e.mu is held.
func (e *Events) put(v any) {
	if e.err != nil {
		return
	}
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		e.err = err
		return
	}
	e.buf = e.buf[:0]
	if e.sse {
		e.buf = append(e.buf, "data: "...)
	}
	e.buf = append(append(e.buf, text...), '\n')
	if e.sse {
		e.buf = append(e.buf, '\n')
	}
	if _, e.err = e.w.Write(e.buf); e.err == nil {
		e.err = e.conn.Flush()
	}
	e.idle.Reset(Keepalive)
}

// End sends no more keepalives.
func (e *Events) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.idle.Stop()
}
