package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
)

// IdempotencyHeader is the header by which a request that is repeated is not done twice.
const IdempotencyHeader = "Idempotency-Key"

// ReplayedHeader says that an answer is that of an earlier request with the same key.
const ReplayedHeader = "Idempotent-Replayed"

// IdempotencyParam documents the header.
var IdempotencyParam = Param{
	Name: IdempotencyHeader, In: InHeader, Min: 1, Max: idempotency.MaxKey,
	Doc: "The same key with the same request within a day gives the same answer, and nothing is done again; with another request 409. The work continues when the client leaves.",
}

// IdempotencyKey returns a request's Idempotency-Key, "" if it has none.
func IdempotencyKey(h http.Header) (string, error) {
	keys := h.Values(IdempotencyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 {
		return "", repeats.ErrKey
	}
	return keys[0], repeats.CheckKey(keys[0])
}

// keptHeaders are those of an answer that its repetition has, too.
var keptHeaders = []string{"Content-Type", "Location", "Preference-Applied", TraceHeader}

// once serves an operation, and gives a request that repeats another the answer of that one.
func (c *Call) once() error {
	if c.op.Method == http.MethodDelete && c.server.repeats != nil && c.Caller != nil {
		return c.forgets()
	}
	if takes, _ := repeats.Operation(c.op.ID); !takes || c.server.repeats == nil || webcall.Of(c.R.Context()) != nil {
		return c.op.Serve.serve(c)
	}
	key, err := IdempotencyKey(c.R.Header)
	if err != nil {
		return err
	}
	if key == "" {
		return c.op.Serve.serve(c)
	}
	r, err := c.keyed(key)
	if err != nil {
		return err
	}
	earlier, repeated, err := c.server.repeats.Begin(c.Context(), r, c.server.life.Done())
	switch {
	case errors.Is(err, repeats.ErrStopped):
		return fault.New(fault.Unavailable, "%s", ErrShutdown)
	case !repeated && err != nil:
		return err
	case !repeated:
		return c.first(r)
	}
	c.Trail.Drop() // the first request has an audit row
	if errors.Is(err, repeats.ErrInProgress) {
		c.W.Header().Set("Retry-After", retryAfter)
	}
	if err != nil {
		return err
	}
	return c.repeat(earlier)
}

// keyed is what a request's key stands for: all that its answer depends on.
func (c *Call) keyed(key string) (r idempotency.Request, err error) {
	var body []byte
	if c.op.Body != nil {
		if body, err = c.ReadBody(); err != nil {
			return r, err
		}
		c.R.Body, c.R.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body)) // keyed has read the body, so its size is known
	}
	h := c.R.Header
	return repeats.Request(c.Caller, key, []byte(c.R.Method), []byte(c.R.URL.Path), []byte(c.R.URL.RawQuery), []byte(h.Get("Content-Type")), []byte(h.Get("Accept")), []byte(h.Get("Prefer")),
		[]byte(c.Caller.Environment.ID), body), nil
}

// repeat answers a request whose key stands for an earlier one.
func (c *Call) repeat(a *idempotency.Answer) error {
	h := c.W.Header()
	for name, value := range a.Header {
		h.Set(name, value)
	}
	h.Set(ReplayedHeader, "true")
	if a.Refusal != nil {
		return &ProtocolError{a.Status, a.Refusal.Code, a.Refusal.Message}
	}
	h.Set("Cache-Control", "no-store")
	c.W.WriteHeader(a.Status)
	_, err := c.W.Write(a.Body)
	return err
}

// first serves a request and keeps its answer. The work continues when the client leaves: it is
// what the client will ask for again.
func (c *Call) first(r idempotency.Request) (err error) {
	ctx, stop := c.Authorized(context.WithoutCancel(c.Context()))
	defer stop()
	ctx, end := c.Living(ctx)
	defer end()
	w := &keptResponse{ResponseWriter: c.W, conn: http.NewResponseController(c.W)}
	c.R, c.W = c.R.WithContext(ctx), w
	renewed := c.server.repeats.Renew(ctx, r, c.TraceID())
	defer func() {
		renewed()
		p := recover()
		c.server.repeats.End(ctx, r, c.TraceID(), c.outcome(w, err, p != nil))
		if p != nil {
			panic(p)
		}
	}()
	return c.op.Serve.serve(c)
}

// outcome is how a request ended.
func (c *Call) outcome(w *keptResponse, err error, panicked bool) repeats.Outcome {
	// A handler that writes nothing answers with 200.
	a := idempotency.Answer{Status: cmp.Or(w.status, http.StatusOK), Body: w.body, Header: map[string]string{}}
	broken := panicked || err != nil && w.status != 0 || c.Trail.Err() != nil || c.R.Context().Err() != nil || errors.Is(err, context.Canceled)
	if err != nil {
		status, body := Render(err)
		a.Status, a.Refusal = status, &idempotency.Refusal{Code: body.Error, Message: body.Message}
	}
	a.Objects = append(c.objects, c.named(a.Body)...)
	for _, name := range keptHeaders {
		if v := w.Header().Get(name); v != "" {
			a.Header[name] = v
		}
	}
	return repeats.Outcome{Answer: a, Broken: broken, Asked: c.Trail != nil && c.Trail.Begun, Unkept: c.unkept, Long: w.long}
}

// Unkept says that the answer to a request must not be stored.
func (c *Call) Unkept() { c.unkept = true }

// About says what the answer to a request is about: when that is deleted, the answer goes, too. What
// the path and the names of a JSON answer say need not be said.
func (c *Call) About(objects ...string) { c.objects = append(c.objects, objects...) }

// forgets serves a deletion, and then deletes the kept answers about what is gone.
func (c *Call) forgets() error {
	w := &keptResponse{ResponseWriter: c.W, conn: http.NewResponseController(c.W)}
	c.W = w
	if err := c.op.Serve.serve(c); err != nil || w.status >= 300 {
		return err
	}
	parts := pathParts.FindAllStringSubmatch(c.op.Path, -1)
	if len(parts) == 0 || !strings.HasSuffix(c.op.Path, "}") { // a part of something that stays
		return nil
	}
	gone := append(c.inPath(parts[len(parts)-1][1]), repeats.Objects(w.body)...)
	c.server.repeats.Forget(c.Context(), c.Caller.Tenant.ID, gone, c.TraceID())
	return nil
}

var pathParts = regexp.MustCompile(`\{([a-z_]+)\}`)

// named are the ids and names of what a request's path and its answer are about.
func (c *Call) named(answer []byte) (all []string) {
	for _, part := range pathParts.FindAllStringSubmatch(c.op.Path, -1) {
		all = append(all, c.inPath(part[1])...)
	}
	return append(all, repeats.Objects(answer)...)
}

// inPath is the id or name that a part of a request's path has.
func (c *Call) inPath(part string) []string {
	return repeats.Object(part, c.Path(part), c.Query.Get("session"))
}

// keptResponse keeps what is answered, also when its client has left.
type keptResponse struct {
	http.ResponseWriter
	conn   *http.ResponseController
	status int
	body   []byte
	long   bool // body is more than is kept
	gone   bool // the client has left
}

func (w *keptResponse) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *keptResponse) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.long = w.long || len(w.body)+len(p) > idempotency.MaxAnswer; w.long {
		w.body = nil
	} else {
		w.body = append(w.body, p...)
	}
	if !w.gone {
		_, err := w.ResponseWriter.Write(p)
		w.gone = err != nil
	}
	return len(p), nil
}

// FlushError implements what http.ResponseController asks for.
func (w *keptResponse) FlushError() error {
	if !w.gone {
		w.gone = w.conn.Flush() != nil
	}
	return nil
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *keptResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
