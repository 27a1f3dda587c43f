package redteam

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// caller calls the server with one key, or with none.
type caller struct {
	base string
	key  string
	http *http.Client
}

// answer is what the server said.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// String is for evidence.
func (a *answer) String() string { return fmt.Sprintf("%d %.300s", a.Status, a.Body) }

// once makes a request. in is sent as it is if it is []byte, otherwise as JSON; nil
// sends no body. headers are pairs of name and value.
func (c caller) once(ctx context.Context, method, path string, in any, headers ...string) (*answer, error) {
	var body io.Reader
	media := "application/json"
	switch v := in.(type) {
	case nil:
	case []byte:
		body, media = bytes.NewReader(v), "application/octet-stream"
	default:
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if in != nil {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.send(r)
}

// send sends a request that the case has built, and reads the answer.
func (c caller) send(r *http.Request) (*answer, error) {
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return &answer{Status: res.StatusCode, Header: res.Header, Body: raw}, nil
}

// maxWait bounds how long a refusal may say to wait.
const maxWait = 15 * time.Second

// do makes a request, and again where the server said when: a run is held by rate
// limits as any client is, and they are not what most cases are about.
func (c caller) do(ctx context.Context, method, path string, in any, headers ...string) (*answer, error) {
	for range 4 {
		a, err := c.once(ctx, method, path, in, headers...)
		if err != nil || a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable {
			return a, err
		}
		seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		if err != nil || wait > maxWait {
			return a, nil
		}
		select {
		case <-time.After(max(wait, 50*time.Millisecond)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return c.once(ctx, method, path, in, headers...)
}

// must makes a request that has to succeed, and decodes its answer.
func (c caller) must(ctx context.Context, method, path string, in, out any) error {
	a, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	if a.Status < 200 || a.Status > 299 {
		return fmt.Errorf("%s %s: %s", method, path, a)
	}
	if out == nil || len(a.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w: %s", method, path, err, a)
	}
	return nil
}
