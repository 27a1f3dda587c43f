package sessionstream

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/feed"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// sse sends events to one client, and comments while there are none.
type sse struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	form Form
	idle *time.Timer

	mu   sync.Mutex
	buf  bytes.Buffer // guarded by mu
	over bool         // guarded by mu
	err  error        // guarded by mu; the client has gone
}

func newSSE(c *httpapi.Call, form Form) *sse {
	o := &sse{w: c.W, conn: http.NewResponseController(c.W), form: form}
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

// frame is an event as it is sent. id is "" for one that a client cannot continue after.
func frame(id string, f Frame) ([]byte, error) {
	data, err := json.Marshal(f.Body, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(id)+len(f.Kind)+len(data)+32)
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	text = append(append(append(text, "event: "...), f.Kind...), "\ndata: "...)
	return append(append(text, data...), "\n\n"...), nil
}

// Event implements feed.Sink.
func (o *sse) Event(id string, e *session.Event) ([]byte, error) {
	if f := o.form.Event(e); f.Kind != "" {
		return frame(id, f)
	}
	return nil, nil
}

// Delta implements feed.Sink.
func (o *sse) Delta(turn run.ID, item string, d *run.Delta) (text []byte, err error) {
	for _, f := range o.form.Delta(turn, item, d) {
		one, err := frame("", f)
		if err != nil {
			return nil, err
		}
		text = append(text, one...)
	}
	return text, nil
}

// Cached implements feed.Sink.
func (o *sse) Cached() bool { return o.form.Cached() }

// last ends the stream of a session that is archived or deleted, or of a thread.
func (o *sse) last(deleted bool) error {
	if f := o.form.Over(deleted); f.Kind != "" {
		text, err := frame("", f)
		if err == nil {
			err = o.Add(text)
		}
		if err != nil {
			return err
		}
	}
	return o.Send()
}

// Send implements feed.Sink.
func (o *sse) Send() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return o.err
}

// Add implements feed.Sink.
func (o *sse) Add(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(text)
	return o.err
}

// Full implements feed.Sink.
func (o *sse) Full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Len() >= feed.MaxHeld
}

// flush sends what there is. o.mu is held.
func (o *sse) flush() {
	if o.err == nil && o.buf.Len() > 0 {
		if _, o.err = o.buf.WriteTo(o.w); o.err == nil {
			o.err = o.conn.Flush()
		}
		if o.buf.Cap() > feed.MaxHeld {
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
