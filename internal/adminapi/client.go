// Package adminapi calls a server's HTTP interface for those who operate it:
// tenants, environments, keys, plans, templates, caps, the audit trail, usage,
// and executions. Its bodies are the server's own types.
package adminapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Client calls one server with one key.
type Client struct {
	base, key string
	http      *http.Client
}

// New returns a Client of the server at base, such as http://127.0.0.1:8080.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		// A redirect would take the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Error is a refusal or failure that the server told of.
type Error struct {
	Status        int
	Code, Message string
	TraceID       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d %s, %s)", e.Message, e.Status, e.Code, e.TraceID)
}

// patience is how long an answer that is not streamed may take.
const patience = 5 * time.Minute

// send makes a request and returns an answer of success. What is sent is JSON, or
// the bytes of an io.Reader.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, in any, accept string) (*http.Response, error) {
	body, bytesOnly := in.(io.Reader)
	if in != nil && !bytesOnly {
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
	switch {
	case bytesOnly:
		r.Header.Set("Content-Type", "application/octet-stream")
	case in != nil:
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // which repeats method and path
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

// refused is what a server told of a request that it did not serve.
func refused(res *http.Response) error {
	failure := &Error{Status: res.StatusCode, Code: "no code", Message: "the server answered " + res.Status, TraceID: res.Header.Get("X-Trace-Id")}
	var told httpapi.ErrorResponse
	if err := json.UnmarshalRead(io.LimitReader(res.Body, 1<<20), &told); err == nil && told.Message != "" {
		failure.Code, failure.Message = told.Error, told.Message
	}
	return failure
}

// call makes a request whose answer is one JSON value.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := c.send(ctx, method, path, query, in, "application/json")
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return out, nil
	}
	if err := json.UnmarshalRead(res.Body, &out); err != nil {
		return out, fmt.Errorf("read the server's answer: %w", err)
	}
	return out, nil
}

// list reads pages until the last, or until there are most items; most is 0 for
// all of them.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, most int) ([]T, error) {
	q := url.Values{}
	for name, values := range query {
		q[name] = values
	}
	out := []T{}
	for {
		page, err := call[httpapi.Page[T]](ctx, c, http.MethodGet, path, q, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Data...)
		if most > 0 && len(out) >= most {
			return out[:most], nil
		}
		if page.NextPage == nil {
			return out, nil
		}
		q.Set("page", *page.NextPage)
	}
}

// copyTo streams an answer to w.
func (c *Client) copyTo(ctx context.Context, w io.Writer, path string, query url.Values, accept string) error {
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
