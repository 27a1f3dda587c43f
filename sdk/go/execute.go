package atoll

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const executePath = "/v1/sandbox/execute"

// Execute runs code and returns its result, once it has ended.
func (c *Client) Execute(ctx context.Context, in ExecuteRequest) (ExecuteResponse, error) {
	return call[ExecuteResponse](ctx, c, http.MethodPost, executePath, nil, in)
}

// ExecuteStream runs code and returns its events as they happen. The caller closes them.
func (c *Client) ExecuteStream(ctx context.Context, in ExecuteRequest) (*Events, error) {
	return c.events(ctx, http.MethodPost, executePath, in)
}

// FollowExecution returns the events of an execution from its start until its end. The
// caller closes them.
func (c *Client) FollowExecution(ctx context.Context, traceID string) (*Events, error) {
	return c.events(ctx, http.MethodGet, under("/v1/executions", traceID, "output"), nil)
}

func (c *Client) events(ctx context.Context, method, path string, in any) (*Events, error) {
	res, err := c.send(ctx, method, path, nil, in, mediaNDJSON) //nolint:bodyclose // Events.Close closes it
	if err != nil {
		return nil, err
	}
	return &Events{TraceID: res.Header.Get("X-Trace-Id"), body: res.Body, in: json.NewDecoder(bufio.NewReader(res.Body))}, nil
}

// Events are those of one execution; the last has the type result.
type Events struct {
	TraceID string
	body    io.Closer
	in      *json.Decoder
}

// Next waits for the next event.
func (e *Events) Next() (Event, error) {
	var ev Event
	err := e.in.Decode(&ev)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return ev, fmt.Errorf("the server's stream ended before the result: %w", err)
	}
	return ev, nil
}

// Close ends the stream; the execution goes on.
func (e *Events) Close() error { return e.body.Close() }
