// Package atoll calls Atoll's HTTP interface.
//
// A Client has a method for each operation it knows. Bodies are the types that
// api/openapi.json describes: wire.gen.go is generated from that document. A request
// that was refused or failed returns an *Error.
//
//	c := atoll.New("http://127.0.0.1:8080", os.Getenv("ATOLL_API_KEY"))
//	box, err := c.CreateSandbox(ctx, atoll.NewSandbox{Name: "dev"})
package atoll

//go:generate go tool -modfile=../gen/go.mod oapi-codegen -config oapi-codegen.yaml ../../api/openapi.json

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one server with one key. It is safe for concurrent use.
type Client struct {
	base, key string
	http      *http.Client
}

// New returns a Client of the server at base, such as http://127.0.0.1:8080. It follows
// no redirects, because they would take the key to another host.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Error is a refusal or failure that the server answered with.
type Error struct {
	Status    int       // of HTTP
	Code      string    // for programs, such as not_found
	Message   string    // for people
	Dimension string    // with rate_limited: which limit
	ResetsAt  time.Time // with rate_limited: when the limit starts again; zero if it does not
	TraceID   string    // names the request in the server's log
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d %s, %s)", e.Message, e.Status, e.Code, e.TraceID)
}

// callTimeout bounds a request whose answer is one JSON value.
const callTimeout = 5 * time.Minute

const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
	mediaBytes  = "application/octet-stream"
	mediaAny    = "*/*"
)

// send makes a request and returns its answer, if that is a success. in is sent as
// bytes if it is an io.Reader, otherwise as JSON; nil sends no body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, in any, accept string) (*http.Response, error) {
	body, isBytes := in.(io.Reader)
	if in != nil && !isBytes {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", accept)
	upload, isForm := in.(*form)
	switch {
	case isForm:
		r.Header.Set("Content-Type", upload.media)
	case isBytes:
		r.Header.Set("Content-Type", mediaBytes)
	case in != nil:
		r.Header.Set("Content-Type", mediaJSON)
	}
	res, err := c.http.Do(r)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) { // which repeats method and path
			err = e.Err
		}
		return nil, fmt.Errorf("no answer from %s: %w", c.base, err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refused(res)
}

// refused reads the error that a server answered with.
func refused(res *http.Response) error {
	failure := &Error{Status: res.StatusCode, Code: "no code", Message: "the server answered " + res.Status, TraceID: res.Header.Get("X-Trace-Id")}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return failure
	}
	var told ErrorResponse
	if err := json.Unmarshal(raw, &told); err == nil && told.Message != "" {
		failure.Code, failure.Message, failure.Dimension, failure.ResetsAt = told.Error, told.Message, told.Dimension, told.ResetsAt
		return failure
	}
	var open ResponseRefusal // of responses
	if err := json.Unmarshal(raw, &open); err == nil && open.Error.Message != "" {
		failure.Code, failure.Message = open.Error.Code, open.Error.Message
	}
	return failure
}

// call makes a request whose answer is one JSON value.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := c.send(ctx, method, path, query, in, mediaJSON)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return out, nil
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read the server's answer: %w", err)
	}
	return out, nil
}

// do makes a request whose answer has no body that matters.
func (c *Client) do(ctx context.Context, method, path string, query url.Values) error {
	_, err := call[struct{}](ctx, c, method, path, query, nil)
	return err
}

// page is a part of a list.
type page[T any] struct {
	Data     []T     `json:"data"`
	NextPage *string `json:"next_page"`
}

// list reads pages until the last, or until there are limit items; 0 is for all of them.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, limit int) ([]T, error) {
	q := url.Values{}
	for name, values := range query {
		q[name] = values
	}
	out := []T{}
	for {
		part, err := call[page[T]](ctx, c, http.MethodGet, path, q, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, part.Data...)
		if limit > 0 && len(out) >= limit {
			return out[:limit], nil
		}
		if part.NextPage == nil {
			return out, nil
		}
		q.Set("page", *part.NextPage)
	}
}

// download streams an answer to w.
func (c *Client) download(ctx context.Context, w io.Writer, path string, query url.Values, accept string) error {
	res, err := c.send(ctx, http.MethodGet, path, query, nil, accept)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("the answer was cut short: %w", err)
	}
	return nil
}

// upload sends bytes, for as long as that takes.
func (c *Client) upload(ctx context.Context, method, path string, query url.Values, r io.Reader) error {
	res, err := c.send(ctx, method, path, query, r, mediaJSON)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// under builds a path: each name is escaped.
func under(prefix string, names ...string) string {
	for _, name := range names {
		prefix += "/" + url.PathEscape(name)
	}
	return prefix
}
