package execute

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// streamPiece is about how many bytes of a stream are sent at a time.
const streamPiece = 64 << 10

var streamBuffers = sync.Pool{New: func() any { return new([]byte) }}

// stream sends an execution's events to one client, as NDJSON or as server-sent
// events.
type stream struct {
	w       http.ResponseWriter
	conn    *http.ResponseController
	media   string
	traceID string
	coded   bool // the client takes a result's error for a code

	mu    sync.Mutex // the head may be sent by a timer
	begun bool       // guarded by mu
	over  bool       // guarded by mu: nothing more may be sent
	last  int64      // guarded by mu: seq of the last event sent, or that the client had before
	gap   bool       // guarded by mu: events are missing
	buf   *[]byte    // guarded by mu
	err   error      // guarded by mu: the client has gone
}

// newStream returns a stream that continues after the seq that its client has; 0 for none.
// The caller ends it.
func newStream(w http.ResponseWriter, media, traceID string, after int64) *stream {
	return &stream{
		w: w, conn: http.NewResponseController(w), media: media, traceID: traceID,
		last: after, buf: streamBuffers.Get().(*[]byte),
	}
}

// end sends nothing more.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	streamBuffers.Put(s.buf)
	s.buf = nil
}

// begin sends the head and the status, unless that has been done.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.begun {
		return
	}
	s.head()
	s.flush()
}

// head writes what every stream begins with. s.mu is held.
func (s *stream) head() {
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", s.media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	s.w.WriteHeader(http.StatusOK)
	*s.buf = (*s.buf)[:0]
	if s.last >= 1 {
		return
	}
	s.last = 1
	s.open("status", 1)
	*s.buf = append(*s.buf, `{"type":"status","trace_id":"`+s.traceID+`","status":"running","seq":1}`...)
	s.shut()
}

// open and shut frame one event in the buffer. s.mu is held.
func (s *stream) open(kind string, seq int64) {
	if s.media == httpapi.EventStream {
		*s.buf = append(strconv.AppendInt(append(*s.buf, "id: "...), seq, 10), "\nevent: "+kind+"\ndata: "...)
	}
}

func (s *stream) shut() {
	if s.media == httpapi.EventStream {
		*s.buf = append(*s.buf, '\n')
	}
	*s.buf = append(*s.buf, '\n')
}

// events sends a batch of events.
func (s *stream) events(batch []execution.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.head()
	}
	for _, e := range batch {
		if e.Seq <= s.last {
			continue
		}
		s.gap = s.gap || e.Seq > s.last+1
		s.last = e.Seq
		kind := eventOutput
		if e.Stream == "" {
			kind = eventKeepalive
		}
		s.open(kind, e.Seq)
		*s.buf = appendEvent(*s.buf, e)
		s.shut()
		if len(*s.buf) >= streamPiece {
			s.write()
		}
	}
	return s.flush()
}

// result sends the last event: how e ended.
func (s *stream) result(e *execution.Execution, out outputs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.head()
	}
	seq := max(e.LastSeq, s.last) + 1
	body := Event{Type: eventResult, TraceID: s.traceID, Status: statusOf(e.Status), Result: responseOf(e, s.coded), Seq: seq}
	body.Result.note(e, out)
	truncated := e.OutputTruncated || s.gap || s.last < e.LastSeq && !e.NotStarted
	body.OutputTruncated = &truncated
	s.open(eventResult, seq)
	s.write()
	if s.err == nil {
		s.err = out.write(s.w, &body)
	}
	s.shut()
	return s.flush()
}

// write sends what is in the buffer. s.mu is held.
func (s *stream) write() {
	if s.err == nil && len(*s.buf) > 0 {
		_, s.err = s.w.Write(*s.buf)
	}
	*s.buf = (*s.buf)[:0]
}

// flush sends everything on its way. s.mu is held.
func (s *stream) flush() error {
	s.write()
	if s.err == nil {
		s.err = s.conn.Flush()
	}
	return s.err
}

// refuse reports whether nothing was sent, and then sends nothing later either.
func (s *stream) refuse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = !s.begun
	return s.over
}

// follow sends e's events after a seq, and its result. headStart is how long the head waits
// for the first of them; until then the answer can be a refusal.
func (h *Handlers) follow(c *httpapi.Call, e *execution.Execution, media string, after int64, headStart time.Duration) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	st := newStream(c.W, media, e.TraceID, after)
	st.coded = takesCodes(c)
	defer st.end()
	if headStart == 0 {
		st.begin()
	} else {
		head := time.AfterFunc(headStart, st.begin)
		defer head.Stop()
	}
	ended, err := h.Gateway.Follow(ctx, e, max(after, 1), st.events)
	if err != nil && st.refuse() {
		return c.Unfinished(ctx, e.TraceID, err)
	}
	if ended != nil { // an error with it says that no code was run, as the result does
		err = h.sendResult(ctx, c, st, ended)
	}
	if err == nil {
		return nil
	}
	c.Log().DebugContext(ctx, "stream ended early", "trace_id", e.TraceID, "error", err)
	panic(http.ErrAbortHandler) // half a stream must not look like a whole one
}

func (h *Handlers) sendResult(ctx context.Context, c *httpapi.Call, st *stream, e *execution.Execution) error {
	out, err := h.openOutputs(ctx, e)
	if errors.Is(err, gateway.ErrUnreadable) { // the client has the events, and waits for the end
		c.Log().WarnContext(ctx, "cannot read the output of an execution", "trace_id", e.TraceID, "error", err)
		out, err = noOutputs(), nil
	}
	if err != nil {
		return err
	}
	defer out.Close()
	return st.result(e, out)
}
