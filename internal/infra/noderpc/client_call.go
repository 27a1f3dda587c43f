package noderpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
)

type args []any

// method is a method of the server.
type method struct {
	target target
	handle uint64
	name   string
	safe   bool // the client may repeat it after a cut
}

// stream is an open call.
type stream struct {
	*link
	on     *clientConn
	ctx    context.Context
	forget func() bool // stops the cancellation by ctx
	free   func()      // gives up the stream's place among the client's calls
}

// close ends the call.
func (s *stream) close() {
	s.forget()
	s.link.close()
	s.free()
}

// cut converts an error of the stream to the error that the caller sees.
func (s *stream) cut(err error, as func(error) error) error {
	if s.ctx != nil && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return as(err)
}

// call makes a call whose answer is results. results are pointers.
func (c *Client) call(ctx context.Context, m method, in args, results ...any) error {
	s, err := c.open(ctx, m, in, results...)
	if s != nil {
		s.close()
	}
	return err
}

// open makes a call whose stream goes on after the answer.
func (c *Client) open(ctx context.Context, m method, in args, results ...any) (*stream, error) {
	for repeated := false; ; repeated = true {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		conn, err := c.connected(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, unreachable(err)
		}
		s, sent, err := c.begin(ctx, conn, m, in)
		if err == nil {
			sent = true
			if err = s.await(in, results); err == nil {
				return s, nil
			}
			s.close()
			if a, ok := errors.AsType[*answeredError](err); ok {
				return nil, a.err
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errEncode):
			return nil, fault.Wrap(fault.TooLarge, err, "the request is too large for the machine of the sandbox")
		case err == errCalls:
			return nil, err
		case errors.Is(err, errProtocol):
			return nil, fault.Wrap(fault.Unavailable, &sentError{err}, "the machine of the sandbox sent an invalid answer; the call may have run. Check its effect, and run the same release of Atoll on both machines")
		case repeated && !sent:
			return nil, unreachable(err)
		case !sent, !repeated && m.safe:
		default:
			return nil, mayHaveRun(err)
		}
	}
}

// begin sends a request. sent says whether the server may have received it.
func (c *Client) begin(ctx context.Context, conn *clientConn, m method, in args) (s *stream, sent bool, err error) {
	select {
	case c.calls <- struct{}{}:
	default:
		return nil, false, errCalls
	}
	y, err := conn.mux.OpenStream()
	if err != nil {
		<-c.calls
		conn.mux.Close()
		return nil, false, err
	}
	s = c.stream(ctx, y)
	s.on = conn
	q := outgoing{Target: m.target, Handle: m.handle, Method: m.name, Args: make([]any, len(in))}
	for i, a := range in {
		switch a := a.(type) {
		case codecontext.Sink:
		case io.Reader:
			_, q.Push = a.(sized)
		default:
			q.Args[i] = a
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = max(time.Until(deadline), time.Nanosecond)
	}
	c.mu.Lock()
	q.After = c.lastNotice
	c.mu.Unlock()
	if err := s.send(q); err != nil {
		s.close()
		return nil, !errors.Is(err, errEncode), err
	}
	return s, true, nil
}

// stream returns a stream that ends with ctx.
func (c *Client) stream(ctx context.Context, conn net.Conn) *stream {
	s := &stream{link: newLink(conn, maxAnswer, maxRequest, nil), ctx: ctx}
	s.free = sync.OnceFunc(func() { <-c.calls })
	s.forget = context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), codecontext.ErrDetached) {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_ = s.send(message{Cancel: remote.EncodeError(codecontext.ErrDetached)})
		}
		s.link.close()
	})
	return s
}

// answeredError is an error that the server or the caller's reader or sink returned.
type answeredError struct{ err error }

func (a *answeredError) Error() string { return a.err.Error() }

// await serves the caller's reader and sink until the answer, and decodes the answer.
func (s *stream) await(in args, results []any) error {
	u := uploading{s: s}
	var sink codecontext.Sink
	for _, a := range in {
		switch a := a.(type) {
		case codecontext.Sink:
			sink = a
		case io.Reader:
			u.r = a
			if _, ok := a.(sized); ok {
				u.credit = maxUpload
			}
		}
	}
	var failed error // of the sink
	for {
		if err := u.send(); err != nil {
			return err
		}
		m, err := s.message()
		if err != nil {
			return err
		}
		switch {
		case m.Answer:
			if err := m.Err.Decode(); err != nil {
				switch {
				case u.failed != nil:
					err = u.failed
				case failed != nil:
					err = failed
				}
				return &answeredError{err}
			}
			return decodeResults(m.Results, results)
		case m.Credit > 0 && u.r != nil:
			u.credit += min(m.Credit, maxUpload)
		case m.Event != nil && sink != nil:
			if failed != nil {
				continue
			}
			failed = sink(*m.Event)
			if err := s.send(message{Sunk: true, Err: remote.EncodeError(failed)}); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: an unexpected message instead of an answer", errProtocol)
		}
	}
}

// decodeResults decodes the results of an answer.
func decodeResults(from []cbor.RawMessage, results []any) error {
	if len(from) != len(results) {
		return fmt.Errorf("%w: an answer with %d results instead of %d", errProtocol, len(from), len(results))
	}
	for i, to := range results {
		if err := decodeMessage(from[i], to); err != nil {
			return err
		}
		if _, optional := to.(**remote.Failure); optional {
			continue
		}
		if v := reflect.ValueOf(to).Elem(); !complete(v) {
			return fmt.Errorf("%w: result %d of an answer is missing", errProtocol, i+1)
		}
	}
	return nil
}

// complete reports whether v is no nil pointer, and a list without nil pointers.
func complete(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil()
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Pointer {
			return true
		}
		for i := range v.Len() {
			if v.Index(i).IsNil() {
				return false
			}
		}
	}
	return true
}

// uploading sends what the caller's reader reads.
type uploading struct {
	s      *stream
	r      io.Reader // nil for none
	credit int64
	ended  bool
	failed error // of the reader
	buf    []byte
}

// send sends what the credit allows.
func (u *uploading) send() error {
	for u.r != nil && !u.ended && u.credit > frameCost {
		if u.buf == nil {
			u.buf = make([]byte, piece)
		}
		n, err := u.r.Read(u.buf[:min(u.credit-frameCost, piece)])
		if n > 0 {
			u.credit -= int64(n) + frameCost
			if err := u.s.sendData(u.buf[:n]); err != nil {
				return err
			}
		}
		if err == nil {
			continue
		}
		u.ended = true
		if err == io.EOF {
			return u.s.sendEmpty(frameEnd)
		}
		u.failed = err
		return u.s.send(message{Err: remote.EncodeError(err)})
	}
	return nil
}
