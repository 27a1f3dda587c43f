package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
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

// repeatable are the operations that take an Idempotency-Key by this package: those of which a
// second one would make, or run, something more. Executions have their own. Client libraries
// send a key by themselves with those that are true, which make something and answer. The others
// work for as long as their client waits, or read what it streams: a key there says that the
// work is to continue without the client, which only the caller knows.
var repeatable = map[string]bool{
	"createSandbox": true, "forkSandbox": true, "createSnapshot": true, "startProcess": true, "createContext": true, "createContainer": true,
	"createSession": true, "createSessionDefault": true, "sendSessionEvent": true, "sendSessionEventDefault": true,
	"createAgent": true, "createAgentDefault": true, "copyAgent": true, "copyAgentDefault": true, "createVault": true, "createVaultCredential": true,

	"writeProcess": false, "runContext": false, "createResponse": false, "createAgentResponse": false,
	"executeCode": false, "tool_execute_code": false, "tool_shell": false, "search": false, "fetch": false,
}

// Repeatable reports whether an operation takes an Idempotency-Key by this package, and whether
// client libraries send one by themselves.
func Repeatable(id string) (takes, automatic bool) {
	automatic, takes = repeatable[id]
	return takes, automatic
}

// Repeatables is how many operations take an Idempotency-Key by this package.
func Repeatables() int { return len(repeatable) }

// IdempotencyKey returns a request's Idempotency-Key, "" if it has none.
func IdempotencyKey(h http.Header) (string, error) {
	keys := h.Values(IdempotencyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	ok := len(keys) == 1 && len(key) >= 1 && len(key) <= idempotency.MaxKey
	for i := range len(key) {
		ok = ok && key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return "", Invalid("Idempotency-Key must be given once, with 1 to %d printable ASCII characters", idempotency.MaxKey)
	}
	return key, nil
}

// keptHeaders are those of an answer that its repetition has, too.
var keptHeaders = []string{"Content-Type", "Location", "Preference-Applied", TraceHeader}

// once serves an operation, and gives a request that repeats another the answer of that one.
func (c *Call) once() error {
	if c.op.Method == http.MethodDelete && c.server.repeats != nil && c.Caller != nil {
		return c.forgets()
	}
	if takes, _ := Repeatable(c.op.ID); !takes || c.server.repeats == nil || innerOf(c.R.Context()) != nil {
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
	earlier, err := c.begin(r)
	if err != nil {
		return err
	}
	if earlier == nil {
		return c.first(r)
	}
	c.Trail.Drop() // the first request has an audit row
	return c.repeat(r, earlier)
}

// A request whose key stands for one that is being served looks again in pauses that grow, and
// is refused in the end.
const (
	firstLook   = 20 * time.Millisecond
	longestLook = time.Second
	waitsFor    = 30 * time.Second
)

// begin records the request as begun and returns nil, or what became of the one that its key
// stands for. It waits for that one's end.
func (c *Call) begin(r idempotency.Request) (earlier *idempotency.Record, err error) {
	ctx, store, until := c.Context(), c.server.repeats, time.Now().Add(waitsFor)
	for look := firstLook; ; look = min(2*look, longestLook) {
		if earlier == nil { // there is none, or it gave the key up
			if earlier, err = store.Begin(ctx, r); err != nil || earlier == nil {
				return nil, err
			}
		}
		if earlier.Body != r.Body || earlier.State != idempotency.Begun || time.Now().After(until) {
			return earlier, nil
		}
		select {
		case <-time.After(look):
		case <-c.server.life.Done():
			return nil, fault.New(fault.Unavailable, "%s", ErrShutdown)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if earlier, err = store.Get(ctx, r); err != nil {
			return nil, err
		}
	}
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
	sum := sha256.New()
	for _, part := range [][]byte{
		[]byte(c.R.Method), []byte(c.R.URL.Path), []byte(c.R.URL.RawQuery), []byte(c.R.Header.Get("Content-Type")), []byte(c.R.Header.Get("Accept")), []byte(c.R.Header.Get("Prefer")),
		[]byte(c.Caller.Environment.ID), body,
	} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	r = idempotency.Request{Tenant: c.Caller.Tenant.ID, Caller: c.Caller.Key.ID, Key: key}
	sum.Sum(r.Body[:0])
	return r, nil
}

// repeat answers a request whose key stands for an earlier one.
func (c *Call) repeat(r idempotency.Request, earlier *idempotency.Record) error {
	switch {
	case earlier.Body != r.Body:
		return idempotency.ErrOtherRequest
	case earlier.State == idempotency.Begun:
		c.W.Header().Set("Retry-After", retryAfter)
		return fault.New(fault.Conflict, "the request with this Idempotency-Key is being worked on; repeat it in a moment for its answer")
	case earlier.State == idempotency.TooLong:
		return fault.New(fault.Conflict, "the request with this Idempotency-Key was done, and its answer was too long to be kept: look at what it made")
	case earlier.State == idempotency.NotKept:
		return fault.New(fault.Conflict, "the request with this Idempotency-Key was done, and its answer was not stored because the request has store: false")
	case earlier.State != idempotency.Done:
		return fault.New(fault.Conflict, "the request with this Idempotency-Key broke off, and how far it came is not known: look at what there is, and use another key to do it again")
	}
	h, a := c.W.Header(), earlier.Answer
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
	renewed := c.renew(ctx, r)
	defer func() {
		renewed()
		p := recover()
		if failed := c.conclude(context.WithoutCancel(ctx), r, w, err, p != nil); failed != nil {
			c.server.log.WarnContext(ctx, "cannot store the answer of a request with an Idempotency-Key", "trace_id", c.TraceID(), "error", failed)
		}
		if p != nil {
			panic(p)
		}
	}()
	return c.op.Serve.serve(c)
}

// renew says, until the function that it returns is called, that the request is worked on.
func (c *Call) renew(ctx context.Context, r idempotency.Request) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(idempotency.Lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := c.server.repeats.Renew(ctx, r); err != nil && ctx.Err() == nil {
					c.server.log.WarnContext(ctx, "cannot renew a request with an Idempotency-Key", "trace_id", c.TraceID(), "error", err)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// concludeTime bounds recording how a request ended.
const concludeTime = 10 * time.Second

// conclude records how a request ended. One that was refused has done nothing and may be made
// again, unless a sandbox was asked to do something; a limit and a 503 say that nothing was
// begun, whatever was asked.
func (c *Call) conclude(ctx context.Context, r idempotency.Request, w *keptResponse, err error, panicked bool) error {
	ctx, cancel := context.WithTimeout(ctx, concludeTime)
	defer cancel()
	store := c.server.repeats
	// A handler that writes nothing answers with 200.
	a := idempotency.Answer{Status: cmp.Or(w.status, http.StatusOK), Body: w.body, Header: map[string]string{}}
	switch {
	case panicked, err != nil && w.status != 0, c.Trail.Err() != nil, c.R.Context().Err() != nil, errors.Is(err, context.Canceled):
		return store.End(ctx, r, idempotency.Unknown, idempotency.Answer{})
	case err != nil:
		status, body := Render(err)
		a.Status, a.Refusal = status, &idempotency.Refusal{Code: body.Error, Message: body.Message}
	}
	asked := c.Trail != nil && c.Trail.Begun // a sandbox, which may have done a part
	switch {
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable, !asked && a.Status >= 400 && a.Status < 500:
		return store.Release(ctx, r)
	case c.unkept && err == nil:
		return store.End(ctx, r, idempotency.NotKept, idempotency.Answer{})
	}
	a.Objects = append(c.objects, c.named(a.Body)...)
	if w.long {
		return store.End(ctx, r, idempotency.TooLong, idempotency.Answer{Objects: a.Objects})
	}
	for _, name := range keptHeaders {
		if v := w.Header().Get(name); v != "" {
			a.Header[name] = v
		}
	}
	return store.End(ctx, r, idempotency.Done, a)
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
	gone := append(c.inPath(parts[len(parts)-1][1]), inAnswer(w.body)...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), concludeTime)
	defer cancel()
	if err := c.server.repeats.Forget(ctx, c.Caller.Tenant.ID, gone); err != nil {
		c.server.log.WarnContext(ctx, "cannot delete stored answers about a deleted object", "trace_id", c.TraceID(), "error", err)
	}
	return nil
}

var pathParts = regexp.MustCompile(`\{([a-z_]+)\}`)

// named are the ids and names of what a request's path and its answer are about.
func (c *Call) named(answer []byte) (all []string) {
	for _, part := range pathParts.FindAllStringSubmatch(c.op.Path, -1) {
		all = append(all, c.inPath(part[1])...)
	}
	return append(all, inAnswer(answer)...)
}

// inPath is the id or name that a part of a request's path has. Names of sandboxes are their sessions'.
func (c *Call) inPath(part string) []string {
	switch value := c.Path(part); {
	case value == "":
		return nil
	case part == "sandbox" && !runtime.ID(value).Valid():
		return []string{cmp.Or(c.Query.Get("session"), sandbox.Default) + "/" + value}
	default:
		return []string{value}
	}
}

// inAnswer returns the ids in a JSON answer, and a sandbox's session and name in the form of inPath.
func inAnswer(answer []byte) (all []string) {
	var of struct {
		ID        string `json:"id"`
		Slug      string `json:"slug"`
		Sandbox   string `json:"sandbox_id"`
		Session   string `json:"session"`
		Name      string `json:"name"`
		Trace     string `json:"trace_id"`
		Snapshot  string `json:"snapshot_id"`
		Process   string `json:"process_id"`
		Container string `json:"container_id"`
	}
	if json.Unmarshal(answer, &of) != nil {
		return nil
	}
	if of.Sandbox != "" && of.Name != "" {
		all = append(all, cmp.Or(of.Session, sandbox.Default)+"/"+of.Name)
	}
	for _, id := range []string{of.ID, of.Slug, of.Sandbox, of.Trace, of.Snapshot, of.Process, of.Container} {
		if id != "" {
			all = append(all, id)
		}
	}
	return all
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
