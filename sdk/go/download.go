package atoll

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// download streams an answer to w.
func (c *Client) download(ctx context.Context, w io.Writer, path string, query url.Values) error {
	return c.downloadAs(ctx, w, path, query, mediaAny)
}

func (c *Client) downloadAs(ctx context.Context, w io.Writer, path string, query url.Values, accept string) error {
	r, err := c.openAs(ctx, path, query, accept)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// open returns a reader of an answer.
func (c *Client) open(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	return c.openAs(ctx, path, query, mediaAny)
}

func (c *Client) openAs(ctx context.Context, path string, query url.Values, accept string) (io.ReadCloser, error) {
	r := &file{ctx: ctx, c: c, request: request{method: http.MethodGet, path: path, query: query, accept: accept}}
	res, err := c.send(ctx, &r.request) //nolint:bodyclose // file.Close closes it
	if err != nil {
		return nil, err
	}
	r.body, r.version, r.traceID = res.Body, version(res.Header), res.Header.Get("X-Trace-Id")
	return r, nil
}

// file is an answer that is read. When its connection breaks it goes on where it was, if the
// server can tell whether it is the same still.
type file struct {
	ctx     context.Context // of the read: io.Reader has none
	c       *Client
	request request
	body    io.ReadCloser
	read    int64
	version string // for If-Range; "" if there is none
	traceID string
	attempt int
}

func (f *file) Read(p []byte) (int, error) {
	for {
		n, err := f.body.Read(p)
		f.read += int64(n)
		if n > 0 {
			f.attempt = 0
		}
		if n > 0 && !errors.Is(err, io.EOF) {
			return n, nil // an error comes again
		}
		if err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		if err := f.resume(err); err != nil {
			return 0, err
		}
	}
}

// resume asks for the rest.
func (f *file) resume(cause error) error {
	cause = fmt.Errorf("the answer was cut short: %w", cause)
	for {
		if f.ctx.Err() != nil || f.version == "" || !f.c.options.reconnect || f.attempt >= f.c.options.retries || wait(f.ctx, pause(f.attempt, nil)) != nil {
			return broken(f.ctx, f.traceID, cause)
		}
		f.attempt++
		r := f.request
		r.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-", f.read)}, "If-Range": {f.version}}
		res, err := f.c.send(f.ctx, &r)
		switch {
		case err != nil && errors.As(err, new(*Error)):
			return err
		case err != nil:
			continue
		case res.StatusCode != http.StatusPartialContent:
			_ = res.Body.Close()
			return broken(f.ctx, f.traceID, fmt.Errorf("the file changed while it was read: %w", cause))
		}
		_ = f.body.Close()
		f.body = res.Body
		return nil
	}
}

func (f *file) Close() error { return f.body.Close() }

// settled is how much older than its answer a file must be for its time to name one version of
// it: that has a resolution of a second.
const settled = 2 * time.Second

// version is what tells whether an answer is still the same, "" if nothing does.
func version(h http.Header) string {
	if tag := h.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	date, err2 := http.ParseTime(h.Get("Date"))
	if errors.Join(err, err2) != nil || date.Sub(modified) < settled {
		return ""
	}
	return h.Get("Last-Modified")
}
