package atoll

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
	mediaEvents = "text/event-stream"
	mediaBytes  = "application/octet-stream"
	mediaTar    = "application/x-tar"
	mediaAny    = "*/*"
)

// request is a request to be made, as often as it takes.
type request struct {
	method, path string
	query        url.Values
	in           any // sent as bytes if it is an io.Reader, otherwise as JSON; nil sends no body
	accept       string
	header       http.Header // besides those that follow from the rest
}

const idempotencyKey = "Idempotency-Key"

// safe reports whether a request that had no answer may be made again.
func (r *request) safe() bool {
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.header.Get(idempotencyKey) != ""
}

// body is what is sent at each attempt, and whether there can be another one.
func (r *request) body() (next func() (io.Reader, error), media string, again bool, err error) {
	if r.in == nil {
		return func() (io.Reader, error) { return nil, nil }, "", true, nil
	}
	in, isReader := r.in.(io.Reader)
	if !isReader {
		raw, err := json.Marshal(r.in)
		return func() (io.Reader, error) { return bytes.NewReader(raw), nil }, mediaJSON, true, err
	}
	media = mediaBytes
	if f, ok := in.(*form); ok {
		in, media = f.Reader, f.media
	}
	seeker, ok := in.(io.Seeker)
	start := int64(0)
	if ok {
		start, err = seeker.Seek(0, io.SeekCurrent)
	}
	if !ok || err != nil { // a pipe, or a file that is one
		return func() (io.Reader, error) { return in, nil }, media, false, nil
	}
	end, err := seeker.Seek(0, io.SeekEnd)
	return func() (io.Reader, error) {
		_, err := seeker.Seek(start, io.SeekStart)
		return &sized{in, end - start}, err
	}, media, true, err
}

// sized is a body of so many bytes, which its reading does not close.
type sized struct {
	io.Reader
	size int64
}

// send makes a request and returns its answer, if that is a success.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	body, media, again, err := r.body()
	if err != nil {
		return nil, err
	}
	lost := false // the answer to an earlier attempt
	for attempt := 0; ; attempt++ {
		res, err := c.attempt(ctx, r, body, media)
		var failure *Error
		switch {
		case err == nil && res.StatusCode >= 200 && res.StatusCode < 300:
			return res, nil
		case err == nil && lost && r.method == http.MethodDelete && res.StatusCode == http.StatusNotFound:
			res.StatusCode = http.StatusNoContent // an earlier attempt deleted it
			return res, nil
		case err == nil:
			failure = refused(res)
			_ = res.Body.Close()
			err = failure
		default:
			lost = true
		}
		if !again || attempt >= c.options.retries || ctx.Err() != nil || !r.repeats(failure) {
			return nil, err
		}
		if wait(ctx, pause(attempt, failure)) != nil {
			return nil, broken(ctx, "", err)
		}
	}
}

// attempt makes a request once.
func (c *Client) attempt(ctx context.Context, r *request, next func() (io.Reader, error), media string) (*http.Response, error) {
	body, err := next()
	if err != nil {
		return nil, err
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	if s, ok := body.(*sized); ok {
		if q.ContentLength = s.size; s.size == 0 {
			q.Body = http.NoBody
		}
	}
	if c.options.retries == 0 && r.header.Get(idempotencyKey) != "" {
		q.GetBody = nil // with which the transport would send it again by itself
	}
	for name, values := range r.header {
		q.Header[name] = values
	}
	if c.key != "" {
		q.Header.Set("Authorization", "Bearer "+c.key)
	}
	q.Header.Set("Accept", r.accept)
	if media != "" {
		q.Header.Set("Content-Type", media)
	}
	res, err := c.http.Do(q)
	if err != nil {
		return nil, c.noAnswer(ctx, err)
	}
	return res, nil
}

// maxPause is the longest time that a server may ask to be left alone for.
const maxPause = time.Minute

// repeats reports whether a request may be made again after a failure, nil if it had no answer.
// Where the server says when to try again it has begun nothing.
func (r *request) repeats(failure *Error) bool {
	if failure == nil {
		return r.safe()
	}
	asked := failure.RetryAfter > 0 && failure.RetryAfter <= maxPause
	switch failure.Status {
	case http.StatusTooManyRequests:
		return asked
	case http.StatusConflict: // an earlier attempt is still being served
		return asked && r.safe()
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return r.safe() && failure.Result == nil && failure.RetryAfter <= maxPause
	case http.StatusServiceUnavailable:
		return asked || r.safe() && failure.RetryAfter == 0
	}
	return false
}

// Pauses between attempts double from the first to the longest.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// pause is how long to wait before another attempt: what the server says, or twice as long each
// time; up to a quarter more, so that clients that failed together do not return together.
func pause(attempt int, failure *Error) time.Duration {
	d := min(firstPause<<min(attempt, 10), longestPause)
	if failure != nil && failure.RetryAfter > 0 {
		d = failure.RetryAfter
	}
	return d + mathrand.N(d/4+1)
}

// wait waits, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call makes a request whose answer is one JSON value.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (T, error) {
	return answer[T](ctx, c, &request{method: method, path: path, query: query, in: in, accept: mediaJSON})
}

// create is call for a request that makes something. Its Idempotency-Key has that made once,
// however often the request is sent.
func create[T any](ctx context.Context, c *Client, path string, query url.Values, in any) (T, error) {
	return answer[T](ctx, c, &request{method: http.MethodPost, path: path, query: query, in: in, accept: mediaJSON, header: http.Header{idempotencyKey: {c.newKey()}}})
}

// newKey is the Idempotency-Key that the caller has chosen, or a new one.
func (c *Client) newKey() string {
	if c.options.idempotency != "" {
		return c.options.idempotency
	}
	return rand.Text()
}

// perform is call for a request that ends with its caller, unless that has chosen an
// Idempotency-Key.
func perform[T any](ctx context.Context, c *Client, path string, query url.Values, in any) (T, error) {
	r := &request{method: http.MethodPost, path: path, query: query, in: in, accept: mediaJSON}
	if key := c.options.idempotency; key != "" {
		r.header = http.Header{idempotencyKey: {key}}
	}
	return answer[T](ctx, c, r)
}

// answer makes a request whose answer is one JSON value.
func answer[T any](ctx context.Context, c *Client, r *request) (out T, err error) {
	if c.options.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.timeout)
		defer cancel()
	}
	for attempt := 0; ; attempt++ {
		res, err := c.send(ctx, r)
		if err != nil {
			return out, err
		}
		if res.StatusCode == http.StatusNoContent {
			return out, res.Body.Close()
		}
		err = json.NewDecoder(res.Body).Decode(&out)
		_ = res.Body.Close()
		if err == nil {
			return out, nil
		}
		err = broken(ctx, res.Header.Get("X-Trace-Id"), fmt.Errorf("read the server's answer: %w", err))
		if _, isReader := r.in.(io.Reader); isReader || !r.safe() || attempt >= c.options.retries || wait(ctx, pause(attempt, nil)) != nil {
			return out, err
		}
		var empty T
		out = empty
	}
}

// do makes a request whose answer has no body that matters.
func (c *Client) do(ctx context.Context, method, path string, query url.Values) error {
	_, err := call[struct{}](ctx, c, method, path, query, nil)
	return err
}

// form is a body of another media type than bytes have.
type form struct {
	io.Reader
	media string
}

// upload sends bytes, for as long as that takes.
func upload[T any](ctx context.Context, c *Client, method, path string, query url.Values, r io.Reader) (T, error) {
	return answer[T](ctx, c.With(WithTimeout(0)), &request{method: method, path: path, query: query, in: r, accept: mediaJSON})
}

// under builds a path: each name is escaped.
func under(prefix string, names ...string) string {
	for _, name := range names {
		prefix += "/" + url.PathEscape(name)
	}
	return prefix
}
