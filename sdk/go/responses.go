package atoll

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

const responsesPath = "/v1/responses"

// CreateResponse asks a model, and returns its response once that has ended; with
// Background at once.
func (c *Client) CreateResponse(ctx context.Context, in CreateResponse) (Response, error) {
	stream := false
	in.Stream = &stream
	return call[Response](ctx, c, http.MethodPost, responsesPath, nil, in)
}

// StreamResponse asks a model and returns the events of its response as they happen. The
// caller closes them; a response that is not in the background is cancelled with that.
func (c *Client) StreamResponse(ctx context.Context, in CreateResponse) (*ResponseEvents, error) {
	stream := true
	in.Stream = &stream
	return c.responseEvents(ctx, http.MethodPost, responsesPath, nil, in)
}

// Response shows a response as it is now.
func (c *Client) Response(ctx context.Context, id string) (Response, error) {
	return call[Response](ctx, c, http.MethodGet, under(responsesPath, id), nil, nil)
}

// FollowResponse returns the events of a response after the one with a sequence number, -1
// for all, until its end. The caller closes them.
func (c *Client) FollowResponse(ctx context.Context, id string, after int64) (*ResponseEvents, error) {
	query := url.Values{"stream": {"true"}}
	if after >= 0 {
		query.Set("starting_after", strconv.FormatInt(after, 10))
	}
	return c.responseEvents(ctx, http.MethodGet, under(responsesPath, id), query, nil)
}

// CancelResponse ends a response that is under way.
func (c *Client) CancelResponse(ctx context.Context, id string) (Response, error) {
	return call[Response](ctx, c, http.MethodPost, under(responsesPath, id, "cancel"), nil, nil)
}

// DeleteResponse deletes a response that has ended.
func (c *Client) DeleteResponse(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(responsesPath, id), nil)
}

// ResponseFiles lists the files that the model of a response shared.
func (c *Client) ResponseFiles(ctx context.Context, id string) ([]ResponseFile, error) {
	return list[ResponseFile](ctx, c, under(responsesPath, id, "files"), nil, 0)
}

// ResponseFile streams the contents of a file of a response to w.
func (c *Client) ResponseFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, under(responsesPath, id, "files", file, "content"), nil, mediaAny)
}

func (c *Client) responseEvents(ctx context.Context, method, path string, query url.Values, in any) (*ResponseEvents, error) {
	res, err := c.send(ctx, method, path, query, in, "text/event-stream") //nolint:bodyclose // ResponseEvents.Close closes it
	if err != nil {
		return nil, err
	}
	return &ResponseEvents{body: res.Body, in: bufio.NewReader(res.Body)}, nil
}

// ResponseEvents are those of one response. The last one has the response as it ended.
type ResponseEvents struct {
	body io.Closer
	in   *bufio.Reader
	raw  json.RawMessage
	last bool
}

// maxEvent bounds the bytes of an event.
const maxEvent = 64 << 20

// Next waits for the next event. After the last one it returns io.EOF.
func (e *ResponseEvents) Next() (ResponseEvent, error) {
	var ev ResponseEvent
	if e.last {
		return ev, io.EOF
	}
	data, err := e.data()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return ev, fmt.Errorf("the server's stream ended before the response did: %w", err)
	}
	if err := json.Unmarshal(data, &ev); err != nil {
		return ev, fmt.Errorf("read an event of the server's: %w", err)
	}
	switch ev.Type {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		e.last = true
	}
	return ev, nil
}

// data waits for the JSON of the next event.
func (e *ResponseEvents) data() (json.RawMessage, error) {
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			e.raw = bytes.TrimSpace(data)
			return e.raw, nil
		}
	}
}

func (e *ResponseEvents) line() (line []byte, err error) {
	for {
		part, more, err := e.in.ReadLine()
		if err != nil {
			return nil, err
		}
		if line = append(line, part...); !more {
			return line, nil
		}
		if len(line) > maxEvent {
			return nil, fmt.Errorf("an event has more than %d bytes", maxEvent)
		}
	}
}

// Raw is the last event as the server sent it.
func (e *ResponseEvents) Raw() json.RawMessage { return e.raw }

// Close ends the stream.
func (e *ResponseEvents) Close() error { return e.body.Close() }
