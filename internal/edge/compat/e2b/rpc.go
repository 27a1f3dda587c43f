package e2b

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// The services are called by the Connect protocol with JSON, as protobuf has it: bytes in
// base64, 64-bit numbers in strings, names of enumerations, and unset fields omitted.

// maxMessage is the most bytes of a message: a piece of input.
const maxMessage = 8 << 20

// codec reads and writes plain structs. What it does not know it skips: newer clients may
// say more.
type codec string

// Name implements connect.Codec: what follows in the media type of a message.
func (c codec) Name() string { return string(c) }

// Marshal implements connect.Codec.
func (codec) Marshal(v any) ([]byte, error) {
	return json.Marshal(v, jsontext.AllowInvalidUTF8(true))
}

// Unmarshal implements connect.Codec.
func (codec) Unmarshal(text []byte, v any) error {
	if _, err := wire.Weigh("the message", text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// maxBody is the most bytes of a body that has one message. Of one that is too large some
// more is read for nothing, because many clients read no answer before they have sent all.
const maxBody = 8 * maxMessage

var options = []connect.HandlerOption{
	connect.WithCodec(codec("json")), connect.WithCodec(codec("json; charset=utf-8")), connect.WithReadMaxBytes(maxMessage), connect.WithCompression("gzip", nil, nil), connect.WithInterceptors(malformed{}),
}

// malformed has a stream whose first message cannot be read end as the client's mistake.
type malformed struct{}

// WrapUnary implements connect.Interceptor.
func (malformed) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingClient implements connect.Interceptor.
func (malformed) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (malformed) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := next(ctx, conn); err != nil {
			return callError(err)
		}
		return nil
	}
}

// callKey is where the context of a request has its call.
type callKey struct{}

type call struct {
	*httpapi.Call
	served bool // it got as far as its service
}

// callOf returns the call that a service is to serve.
func callOf(ctx context.Context) *httpapi.Call {
	c := ctx.Value(callKey{}).(*call)
	c.served = true
	return c.Call
}

// flushed is an answer whose messages are sent at once.
type flushed struct {
	http.ResponseWriter
	conn *http.ResponseController
	call *call
}

var errMalformed = fault.New(fault.Invalid, "the message cannot be read")

// left has what was refused before its service leave no audit row: it asked for nothing.
func (w flushed) left() {
	if !w.call.served {
		_ = w.call.Trail.Leave(w.call.Context(), errMalformed)
	}
}

// WriteHeader implements http.ResponseWriter.
func (w flushed) WriteHeader(status int) {
	w.left()
	w.ResponseWriter.WriteHeader(status)
}

func (w flushed) Write(p []byte) (int, error) {
	w.left()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher. The next message fails if this does.
func (w flushed) Flush() { _ = w.conn.Flush() }

// Unwrap lets http.ResponseController find the server's own writer.
func (w flushed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// received is the body of a call. One that is prompt must not be waited for: its next bytes
// come soon, or it ends with an error. What is left of it when it is closed is not waited
// for either, as net/http would do before it answers.
type received struct {
	io.Closer
	from   io.Reader
	conn   *http.ResponseController
	prompt bool
	all    bool // was read
}

func (b *received) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.prompt {
		_ = b.conn.SetReadDeadline(time.Time{}) // that of a body would cut the answer off; tests have none
	}
	b.all = err == io.EOF
	if err != nil && !b.all {
		err = callError(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *received) Close() error {
	if !b.all {
		_ = b.conn.SetReadDeadline(time.Now())
	}
	return b.Closer.Close()
}

// calls is an operation of a service. The body of one that is lasting may come as slowly as
// its client likes.
func calls(procedure, audit string, lasting bool, h http.Handler) httpapi.Operation {
	return httpapi.Operation{
		Method: http.MethodPost, Path: procedure, Audit: audit, Body: &httpapi.Body{Media: "application/json"},
		Serve: httpapi.Writes(func(c *httpapi.Call) error {
			if media := c.R.Header.Get("Content-Type"); !strings.HasPrefix(media, "application/json") && !strings.HasPrefix(media, "application/connect+json") {
				return fault.New(fault.Unsupported, "Content-Type must be application/json, or application/connect+json for a stream")
			}
			w := flushed{c.W, http.NewResponseController(c.W), &call{Call: c}}
			r := c.R.WithContext(context.WithValue(c.Context(), callKey{}, w.call))
			from := io.Reader(c.R.Body)
			if !lasting {
				c.R.Body = http.MaxBytesReader(c.W, c.R.Body, maxBody)
				var err error
				if from, err = c.HoldBody(c.Upload(), maxMessage); err != nil {
					return err
				}
			}
			r.Body = &received{Closer: c.R.Body, from: from, conn: w.conn, prompt: !lasting}
			h.ServeHTTP(w, r)
			return nil
		}),
	}
}

// ended leaves the audit row of a call, and turns what became of it into what the client
// is told.
func ended(c *httpapi.Call, err error) error {
	if err != nil && errors.Is(context.Cause(c.Context()), tenant.ErrKeyInvalid) {
		err = tenant.ErrKeyInvalid
	}
	if left := c.Leave(c.Context(), err); left != nil && err == nil {
		err = left
	}
	if err == nil {
		return nil
	}
	told := callError(err)
	if told.Code() == connect.CodeInternal {
		c.Log().ErrorContext(c.Context(), "call not served", "trace_id", c.TraceID(), "path", c.R.URL.Path, "error", err)
	}
	return told
}

// unary is a call with one message and one answer.
func unary[In, Out any](procedure, audit string, f func(context.Context, *httpapi.Call, *In) (*Out, error)) httpapi.Operation {
	return calls(procedure, audit, false, connect.NewUnaryHandler(procedure, func(ctx context.Context, in *connect.Request[In]) (*connect.Response[Out], error) {
		c := callOf(ctx)
		out, err := f(ctx, c, in.Msg)
		if err := ended(c, err); err != nil {
			return nil, err
		}
		return connect.NewResponse(out), nil
	}, options...))
}

// stream is a call with one message and many answers.
func stream[In, Out any](procedure, audit string, f func(context.Context, *httpapi.Call, *In, *sender[Out]) error) httpapi.Operation {
	return calls(procedure, audit, false, connect.NewServerStreamHandler(procedure, func(ctx context.Context, in *connect.Request[In], out *connect.ServerStream[Out]) error {
		c := callOf(ctx)
		ctx, stop := c.Living(ctx)
		defer stop()
		s := &sender[Out]{out: out}
		defer s.stop()
		return ended(c, f(ctx, c, in.Msg, s))
	}, options...))
}

// sender sends the messages of a stream, and a keepalive while there are none.
type sender[Out any] struct {
	mu    sync.Mutex
	out   *connect.ServerStream[Out]
	alive *Out        // guarded by mu; nil before begin and after stop
	idle  *time.Timer // guarded by mu; nil before begin
}

// begin sends the first message, and has keepalives sent.
func (s *sender[Out]) begin(first, alive *Out) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = alive
	s.idle = time.AfterFunc(httpapi.Keepalive, s.keepalive)
	return s.out.Send(first)
}

func (s *sender[Out]) keepalive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive != nil && s.out.Send(s.alive) == nil {
		s.idle.Reset(httpapi.Keepalive)
	}
}

func (s *sender[Out]) send(m *Out) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Reset(httpapi.Keepalive)
	}
	return s.out.Send(m)
}

func (s *sender[Out]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive = nil; s.idle != nil {
		s.idle.Stop()
	}
}

// within runs f with the sandbox that a call is about: the one of its access token. One
// that was paused by its caller, and is not to be woken by use, does not answer.
func (d *Handlers) within(ctx context.Context, c *httpapi.Call, f func(*sandboxes.Use) error) error {
	claim, err := d.anyClaimOf(c.R)
	if err != nil {
		return err
	}
	r := d.sandboxes.Refer(ctx, c.Caller, c.Trail, sandbox.Default, string(claim.Sandbox))
	return d.sandboxes.WithinAwake(ctx, r, func() (string, error) { return userOf(c) }, f)
}

// userOf is the user that a call wants to be; "" if it does not say.
func userOf(c *httpapi.Call) (string, error) {
	if c.Has("username") {
		return c.Text("username"), nil
	}
	scheme, coded, _ := strings.Cut(c.R.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "basic") {
		return "", nil
	}
	text, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return "", httpapi.Invalid("Authorization is no user's name")
	}
	name, _, _ := strings.Cut(string(text), ":")
	return name, nil
}
