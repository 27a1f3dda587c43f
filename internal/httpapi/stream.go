package httpapi

import (
	"bufio"
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/execution"
)

const (
	keepaliveEvery = 15 * time.Second

	// headStart is how long the status line waits for the first output, so
	// that a run which cannot be started is refused with its own status.
	headStart = 250 * time.Millisecond
)

// outcome is how a streamed run ended.
type outcome struct {
	execution *execution.Execution
	err       error
}

// streamExecute runs req and sends its output as it comes. When the client
// goes away the run continues; when it reads too slowly the oldest output is
// dropped.
func (s *Server) streamExecute(w http.ResponseWriter, r *http.Request, req execution.Request) error {
	q := newQueue()
	defer q.close()
	done := make(chan outcome, 1)
	// Serve waits for this goroutine: execute counts it.
	go func() {
		stdout, stderr := lines{emit: q.output(execution.Stdout)}, lines{emit: q.output(execution.Stderr)}
		e, err := s.execute(r.Context(), req, func(stream execution.Stream, p []byte) {
			if stream == execution.Stderr {
				stderr.write(p)
			} else {
				stdout.write(p)
			}
		})
		stdout.flush()
		stderr.flush()
		done <- outcome{e, err}
	}()

	start := time.NewTimer(headStart)
	defer start.Stop()
	var end *outcome
	select {
	case <-q.ready:
	case <-start.C:
	case <-r.Context().Done():
	case o := <-done:
		if o.err != nil {
			return o.err
		}
		end = &o
	}

	h := w.Header()
	h.Set("Content-Type", ndjson)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	w.WriteHeader(http.StatusOK)
	sw := &streamWriter{conn: http.NewResponseController(w), buf: bufio.NewWriterSize(w, 32<<10)}
	err := s.pump(r.Context(), sw, q, req, done, end)
	s.metrics.dropped.Add(float64(q.dropped()))
	if err != nil {
		s.log.DebugContext(r.Context(), "stream ended early", "trace_id", req.TraceID, "error", err)
	}
	return nil
}

// pump sends events until the result is out or the client has gone.
func (s *Server) pump(ctx context.Context, w *streamWriter, q *queue, req execution.Request, done <-chan outcome, end *outcome) error {
	status := Event{Type: eventStatus, TraceID: req.TraceID, Status: string(execution.Running), Seq: 1}
	if err := w.send(append([]Event{status}, q.take()...)...); err != nil { // ready's token may be spent
		return err
	}
	idle := time.NewTicker(keepaliveEvery)
	defer idle.Stop()
	for end == nil {
		select {
		case <-q.ready:
			if err := w.send(q.take()...); err != nil {
				return err
			}
			idle.Reset(keepaliveEvery)
		case <-idle.C:
			if err := w.send(q.takeOrKeepalive()...); err != nil {
				return err
			}
		case o := <-done:
			end = &o
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return w.send(append(q.take(), s.lastEvent(q, req, *end))...)
}

// lastEvent is the result of a run, also of one that failed after its stream
// had begun.
func (s *Server) lastEvent(q *queue, req execution.Request, end outcome) Event {
	last := Event{Type: eventResult, TraceID: req.TraceID, Seq: q.next()}
	truncated := q.dropped() > 0
	last.OutputTruncated = &truncated
	if end.err != nil {
		_, body := render(end.err)
		s.log.Error("execution failed", "trace_id", req.TraceID, "error", end.err)
		last.Status = string(execution.Failed)
		last.Result = &ExecuteResponse{ExitCode: -1, Error: &body.Message}
		return last
	}
	result := toWire(end.execution, req)
	last.Status, last.Result = wireStatus(end.execution.Status), &result
	return last
}

// streamWriter writes events to one client.
type streamWriter struct {
	conn *http.ResponseController
	buf  *bufio.Writer
}

// send writes events, one a line, and flushes them.
func (w *streamWriter) send(events ...Event) error {
	for i := range events {
		if err := w.write(&events[i]); err != nil {
			return err
		}
		if err := w.buf.WriteByte('\n'); err != nil {
			return err
		}
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	return w.conn.Flush()
}

func (w *streamWriter) write(e *Event) error {
	if e.Result != nil {
		return writeResult(w.buf, e, e.Result)
	}
	return json.MarshalWrite(w.buf, e, jsontext.AllowInvalidUTF8(true))
}
