package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lines sends values to one client as they come: as NDJSON, or as server-sent
// events to one that asks for them. While there are none it sends a keepalive.
type lines struct {
	w      http.ResponseWriter
	conn   *http.ResponseController
	events bool
	idle   *time.Timer

	mu    sync.Mutex
	alive any    // guarded by mu; what a keepalive is
	buf   []byte // guarded by mu
	over  bool   // guarded by mu
	err   error  // guarded by mu; the client has gone
}

// newLines begins the answer. The caller ends it.
func newLines(w http.ResponseWriter, r *http.Request, alive any) *lines {
	l := &lines{w: w, conn: http.NewResponseController(w), events: accepts(r.Header, eventStream), alive: alive}
	h := w.Header()
	h.Set("Content-Type", ndjson)
	if l.events {
		h.Set("Content-Type", eventStream)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	w.WriteHeader(http.StatusOK)
	_ = l.conn.Flush() // the next line tells
	l.idle = time.AfterFunc(watchKeepalive, l.keepalive)
	return l
}

func (l *lines) keepalive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.put(l.alive)
	}
}

// send sends a line.
func (l *lines) send(v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(v)
	return l.err
}

// resting says what the next keepalive is.
func (l *lines) resting(alive any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alive = alive
}

// put writes a line. l.mu is held.
func (l *lines) put(v any) {
	if l.err != nil {
		return
	}
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		l.err = err
		return
	}
	l.buf = l.buf[:0]
	if l.events {
		l.buf = append(l.buf, "data: "...)
	}
	l.buf = append(append(l.buf, text...), '\n')
	if l.events {
		l.buf = append(l.buf, '\n')
	}
	if _, l.err = l.w.Write(l.buf); l.err == nil {
		l.err = l.conn.Flush()
	}
	l.idle.Reset(watchKeepalive)
}

// end lets go of the client.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.idle.Stop()
}
