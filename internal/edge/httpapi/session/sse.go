package session

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// sse sends events to one client, and comments while there are none.
type sse struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	idle *time.Timer

	mu   sync.Mutex
	buf  bytes.Buffer // guarded by mu
	over bool         // guarded by mu
	err  error        // guarded by mu; the client has gone
}

func newSSE(c *httpapi.Call) *sse {
	o := &sse{w: c.W, conn: http.NewResponseController(c.W)}
	c.W.Header().Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	c.Start(httpapi.EventStream)
	_ = o.conn.Flush() // the next event fails if this does
	o.idle = time.AfterFunc(httpapi.Keepalive, o.keepalive)
	return o
}

func (o *sse) keepalive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.buf.WriteString(": keepalive\n\n")
		o.flush()
	}
}

// put adds an event, which flush sends. id is "" for one that a client cannot go on after.
func (o *sse) put(id string, f Frame) error {
	data, err := json.Marshal(f.Body, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if id != "" {
		fmt.Fprintf(&o.buf, "id: %s\n", id)
	}
	fmt.Fprintf(&o.buf, "event: %s\ndata: %s\n\n", f.Kind, data)
	return o.err
}

// full reports whether as much waits to be sent as is held for a client.
func (o *sse) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Len() >= maxHeld
}

func (o *sse) send() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return o.err
}

// flush sends what there is. o.mu is held.
func (o *sse) flush() {
	if o.err == nil && o.buf.Len() > 0 {
		if _, o.err = o.buf.WriteTo(o.w); o.err == nil {
			o.err = o.conn.Flush()
		}
		if o.buf.Cap() > maxHeld {
			o.buf = bytes.Buffer{}
		}
	}
	if !o.over {
		o.idle.Reset(httpapi.Keepalive)
	}
}

func (o *sse) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.idle.Stop()
}
