package atoll

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"
)

// source is where events come from.
type source[T any] struct {
	first *request
	// again asks for what comes after the last event that came, nil if none did. It is nil, or
	// returns nil, where the server cannot go on.
	again func(last *T) *request
	// hidden reports whether an event is not shown: those that only keep the connection alive, and
	// of a stream that goes on what was there before.
	hidden func(*T) bool
	// ends reports whether an event is the last one. A stream without one ends when its body
	// does, if over, where there is one, says so.
	ends func(*T) bool
	over func(context.Context) bool
	// mute is for streams that send no keepalives.
	mute bool
	// gap is shown when a stream goes on that may have missed events.
	gap *T
	// raw takes an event as the server sent it.
	raw func(*T, []byte)
	// single decodes an answer that is no stream.
	single func(*T, []byte) error
	// abandon ends what the stream is of with c, once the caller's context has ended. traceID is of
	// the first answer, "" if there was none.
	abandon func(ctx context.Context, c *Client, traceID string, last *T)
}

// events yields the events of s.
func events[T any](ctx context.Context, c *Client, s source[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		r := reading[T]{c: c, source: s, yield: yield}
		err := r.all(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil && s.abandon != nil {
			work, c, cancel := c.abandoning(ctx)
			s.abandon(work, c, r.traceID, r.last)
			cancel()
		}
		if !r.stopped {
			var none T
			yield(none, err)
		}
	}
}

// reading is a stream that is being read.
type reading[T any] struct {
	source[T]
	c       *Client
	yield   func(T, error) bool
	traceID string
	last    *T
	stopped bool // the caller has left the loop
	opened  bool // the last request had an answer; without one it was sent again already
}

// errOver says that a stream has ended as it should.
var errOver = errors.New("over")

// all reads to the end of the stream, over as many connections as it takes.
func (r *reading[T]) all(ctx context.Context) error {
	next, attempt := r.first, 0
	for {
		before := r.last
		r.opened = false
		err := r.part(ctx, next)
		if errors.Is(err, errOver) {
			return nil
		}
		if r.last != before {
			attempt = 0
		}
		if refusal := (*Error)(nil); errors.As(err, &refusal) || !r.opened || ctx.Err() != nil || !r.c.options.reconnect || r.again == nil || attempt >= r.c.options.retries {
			return err
		}
		if next = r.again(r.last); next == nil {
			return err
		}
		if wait(ctx, pause(attempt, nil)) != nil {
			return broken(ctx, r.traceID, err)
		}
		attempt++
		if r.gap != nil && r.last != nil && !r.yield(*r.gap, nil) {
			r.stopped = true
			return nil
		}
	}
}

// part reads one connection to its end, and returns errOver if that is the stream's.
func (r *reading[T]) part(ctx context.Context, q *request) error {
	part, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	res, err := r.c.send(part, q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r.opened = true
	if r.traceID == "" {
		r.traceID = res.Header.Get("X-Trace-Id")
	}
	if res.StatusCode == http.StatusNoContent { // there is nothing left
		return errOver
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media == mediaJSON && r.single != nil {
		return r.one(ctx, res.Body)
	}
	heard := func() {}
	if !r.mute {
		quiet := time.AfterFunc(maxSilence, func() { silent(errSilent) })
		defer quiet.Stop()
		heard = func() { quiet.Reset(maxSilence) }
	}
	in := lines{bufio.NewReaderSize(res.Body, 32<<10), media == mediaEvents, heard}
	for {
		data, err := in.next()
		if err != nil && context.Cause(part) == errSilent {
			err = errSilent
		}
		if errors.Is(err, io.EOF) && r.ends == nil && (r.over == nil || r.over(ctx)) {
			return errOver
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return broken(ctx, r.traceID, fmt.Errorf("the server's stream broke off: %w", err))
		}
		var ev T
		if err := json.Unmarshal(data, &ev); err != nil {
			return broken(ctx, r.traceID, fmt.Errorf("read the server's stream: %w", err))
		}
		if r.raw != nil {
			r.raw(&ev, data)
		}
		if r.hidden != nil && r.hidden(&ev) {
			continue
		}
		r.last = &ev
		if !r.yield(ev, nil) {
			r.stopped = true
			return errOver
		}
		if r.ends != nil && r.ends(&ev) {
			return errOver
		}
		if ctx.Err() != nil { // though more has arrived already
			return broken(ctx, r.traceID, errors.New("the stream was left"))
		}
	}
}

// one yields the answer that is no stream.
func (r *reading[T]) one(ctx context.Context, body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxEvent))
	if err != nil {
		return broken(ctx, r.traceID, err)
	}
	var ev T
	if err := r.single(&ev, data); err != nil {
		return err
	}
	r.yield(ev, nil)
	return errOver
}

// maxSilence is how long a server may send nothing before the connection counts as broken; its
// keepalives come every 15 seconds.
const maxSilence = time.Minute

var errSilent = fmt.Errorf("the server sent nothing for %s", maxSilence)

// maxEvent bounds the bytes of an event.
const maxEvent = 64 << 20

// lines are the events of a body: a line of JSON each, or server-sent events.
type lines struct {
	in    *bufio.Reader
	sse   bool
	heard func() // is called before it waits for more
}

// next waits for the JSON of the next event, which is good until the one after it.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case l.sse && ok:
			return bytes.TrimSpace(data), nil
		case !l.sse && len(line) > 0:
			return line, nil
		}
	}
}

// line is a line without its end. One that has no end was cut.
func (l *lines) line() ([]byte, error) {
	if l.in.Buffered() == 0 {
		l.heard()
	}
	line, err := l.in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimRight(line, "\r\n"), nil
	}
	whole := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(whole) > maxEvent {
			return nil, fmt.Errorf("an event has more than %d bytes", maxEvent)
		}
		line, err = l.in.ReadSlice('\n')
		whole = append(whole, line...)
	}
	if errors.Is(err, io.EOF) && len(whole) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(whole, "\r\n"), err
}
