package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	// holdTime is how long the head of an answer to a call waits for its result, which
	// may yet be one for application/json.
	holdTime = 250 * time.Millisecond
	// keepaliveEvery is how often a stream without events has a comment. Published
	// clients give a silent one up after 300 s.
	keepaliveEvery = 15 * time.Second
	// maxEvent is the most bytes of an event unless the client says otherwise: two
	// published clients (mcp from 2, fastmcp from 4, for Python) fail at 1 MiB.
	maxEvent = 1 << 20
	// maxStreamed is the most bytes of a message that is sent as an event where
	// application/json can be had.
	maxStreamed = 512 << 10
)

// eventHeader is how a client says the most bytes of an event that it reads, 0 for no bound.
const eventHeader = "X-Atoll-Max-Event"

// least is what may be said there, in bytes.
const least = 64 << 10

// eventBound reads it.
func eventBound(h http.Header) (int, error) {
	value := h.Get(eventHeader)
	if value == "" {
		return maxEvent, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n != 0 && n < least {
		return 0, fault.New(fault.Invalid, "%s must be 0 for no bound, or a number of bytes from %d", eventHeader, least)
	}
	return n, nil
}

// keepalive is a comment, to be skipped by every reader. No empty line follows it: some
// readers take that for the end of an event once they have seen an id.
var keepalive = []byte(": keepalive\n")

// answer is what is sent to the client of one request. It takes what the SDK writes and
// sends that as clients want it: the head at once and comments in a stream, the first
// event without a name of its own, large results as JSON, refusals as JSON-RPC.
type answer struct {
	w       http.ResponseWriter
	conn    *http.ResponseController
	header  http.Header // the SDK's
	request *message    // what is answered
	limit   int         // bytes of an event; 0 for none
	opens   string      // the id of the session that the request opens, or ""

	mu      sync.Mutex
	state   state       // guarded by mu
	status  int         // guarded by mu; that the SDK has set
	held    []byte      // guarded by mu; events that wait for the head
	refused []byte      // guarded by mu; the SDK's words
	whole   bool        // guarded by mu; the next message goes as application/json
	over    bool        // guarded by mu
	timer   *time.Timer // guarded by mu; of the head, then of the next keepalive
}

// state is how far an answer is.
type state uint8

const (
	waiting   state = iota // nothing was sent
	streaming              // events are sent
	passing                // sent as the SDK writes it
	refusing               // the SDK refuses the request
)

// errOver is for what is written when the request has been answered.
var errOver = errors.New("the request is over")

func newAnswer(w http.ResponseWriter, req *request) *answer {
	a := &answer{w: w, conn: http.NewResponseController(w), header: http.Header{}, request: req.message, limit: req.limit}
	if req.server != nil {
		a.opens = req.session.ID
	}
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(status)
}

// begin notes what kind of answer the SDK gives. a.mu is held.
func (a *answer) begin(status int) {
	if a.status != 0 || a.over {
		return
	}
	a.status = status
	switch kind := a.header.Get("Content-Type"); {
	case a.state != waiting:
	case status >= http.StatusBadRequest && strings.HasPrefix(kind, "text/plain"):
		a.state = refusing
	case strings.HasPrefix(kind, "text/event-stream"):
		if a.request.isPost { // whose first event decides
			return
		}
		a.stream()
	default:
		a.head(status)
		a.state = passing
	}
}

// head sends the SDK's headers. a.mu is held.
func (a *answer) head(status int) {
	for name, values := range a.header {
		a.w.Header()[name] = values
	}
	a.w.WriteHeader(status)
}

// stream sends the head of a stream and what waits for it. The SDK's map of headers is
// not read here, which it may be writing.
func (a *answer) stream() {
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass events on at once
	if a.opens != "" {
		h.Set(sessionHeader, a.opens) // without which the client would have none
	}
	a.w.WriteHeader(http.StatusOK)
	a.state = streaming
	_, _ = a.w.Write(a.held) // the next event fails if this does
	a.held = nil
	_ = a.conn.Flush()
	a.wait(keepaliveEvery)
}

// wait has tick called after a time. a.mu is held.
func (a *answer) wait(d time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.tick)
	} else {
		a.timer.Reset(d)
	}
}

// tick sends what is due: the head, or a comment.
func (a *answer) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over || a.whole:
	case a.state == waiting:
		a.stream()
	case a.state == streaming:
		if _, err := a.w.Write(keepalive); err != nil || a.conn.Flush() != nil {
			return // the client has gone, which ends the request
		}
		a.wait(keepaliveEvery)
	}
}

// hold sends the head of a stream soon, if nothing else is sent before.
func (a *answer) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == waiting && a.timer == nil && !a.over {
		a.wait(holdTime)
	}
}

// room returns how many bytes a message of size bytes may have, 0 for any number. A large
// one goes as application/json if no stream has begun.
func (a *answer) room(size int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == waiting && !a.over {
		a.whole = size > maxStreamed
		return 0
	}
	return a.limit // also for who asks for it again
}

// Write implements http.ResponseWriter. The SDK writes an event at a time.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return 0, errOver
	}
	a.begin(http.StatusOK)
	switch a.state {
	case refusing:
		a.refused = append(a.refused, p...)
		return len(p), nil
	case passing:
		return a.w.Write(p)
	case waiting, streaming:
	}
	event := p
	if unnamed, primes := bytes.CutPrefix(p, []byte("event: prime\n")); primes {
		// Clients warn of event names that the protocol does not have. It asks for an
		// event that has an id and no data.
		if event = unnamed; a.state == waiting {
			a.held = append(a.held, event...)
			a.wait(holdTime)
			return len(p), nil
		}
	}
	if a.state == waiting && a.whole {
		return len(p), a.json(event)
	}
	if a.state == waiting {
		a.stream()
	}
	if _, err := a.w.Write(event); err != nil {
		return 0, err
	}
	a.wait(keepaliveEvery)
	return len(p), nil
}

// json sends the data of an event as the whole answer. a.mu is held.
func (a *answer) json(event []byte) error {
	_, data, _ := bytes.Cut(event, []byte("data: "))
	data = bytes.TrimRight(data, "\n")
	a.header.Set("Content-Type", "application/json")
	a.header.Set("Content-Length", strconv.Itoa(len(data)))
	a.header.Del("Connection")
	a.head(http.StatusOK)
	a.state, a.held = passing, nil
	_, err := a.w.Write(data)
	return err
}

// FlushError implements what http.ResponseController looks for.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.state != streaming && a.state != passing {
		return nil
	}
	return a.conn.Flush()
}

// end sends what is left when the SDK has served the request.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.over {
		return
	}
	switch a.state {
	case refusing:
		a.refuse()
	case waiting: // a session that was closed, or a client that has gone
		if a.held != nil {
			a.stream()
			a.timer.Stop()
		}
	case streaming, passing:
	}
	a.over = true
}

// refuse tells the SDK's refusal as JSON-RPC. a.mu is held.
func (a *answer) refuse() {
	status, body := a.request.refusal(a.status, strings.TrimSpace(string(a.refused)))
	text, err := json.Marshal(body)
	if err != nil {
		text = nil // it has strings only
	}
	a.header.Set("Content-Type", "application/json")
	a.head(status)
	_, _ = a.w.Write(text) // a failed write means that the client has gone
}
