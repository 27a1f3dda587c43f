package atoll

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const executePath = "/v1/sandbox/execute"

// abandonTime limits how long an abandoned call may take to stop its work on the server.
const abandonTime = 5 * time.Second

// Execute runs code and returns its result. If the program times out, the error is an *Error
// with the code ErrProgramTimeout and the Result. If ctx ends first, Execute also stops the
// program. If the answer is lost, Execute retries with the same Idempotency-Key, so nothing runs
// twice.
func (c *Client) Execute(ctx context.Context, in ExecuteRequest) (ExecuteResponse, error) {
	if own := in.Timeout; own != nil && c.options.timeout == DefaultTimeout {
		c = c.With(WithTimeout(max(DefaultTimeout, time.Duration(*own)*time.Second+abandonTime)))
	}
	r := c.execution(in, mediaJSON)
	out, err := answer[ExecuteResponse](ctx, c, r)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrCanceled) {
		work, c, cancel := c.abandoning(ctx)
		defer cancel()
		c.abandon(work, r)
	}
	return out, err
}

// abandoning returns a context and a client for stopping the work of a call whose own context has
// ended. The client has no other timeout, because the caller's may be too short.
func (c *Client) abandoning(ctx context.Context) (context.Context, *Client, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	return ctx, c.With(WithTimeout(0)), cancel
}

// abandon ends the execution that a request started or may still start. It repeats the request
// with the same key to learn the id. An execution that had not started starts, and is then
// cancelled.
func (c *Client) abandon(ctx context.Context, r *request) {
	r.header.Set("Prefer", "respond-async")
	begun, err := answer[AcceptedResponse](ctx, c, r)
	if err != nil || begun.Status != "running" {
		return // it has ended, or the server is away; its own timeout ends it then
	}
	_, _ = c.CancelExecution(ctx, begun.TraceID) // it may have ended by now
}

// StartExecution starts code and returns immediately. Atoll reports the end to the webhook of the
// request; WaitExecution waits for it.
func (c *Client) StartExecution(ctx context.Context, in ExecuteRequest) (AcceptedResponse, error) {
	r := c.execution(in, mediaJSON)
	r.header.Set("Prefer", "respond-async")
	return answer[AcceptedResponse](ctx, c, r)
}

// StreamExecution runs code and yields its events as they happen; the last one has the type
// result. If ctx ends first, StreamExecution also stops the program. Breaking out of the loop
// does not stop it.
func (c *Client) StreamExecution(ctx context.Context, in ExecuteRequest) iter.Seq2[Event, error] {
	r := c.execution(in, mediaNDJSON)
	id := ""
	return events(ctx, c, source[Event]{
		first: r,
		again: func(last *Event) *request {
			if last == nil {
				return r // which has its Idempotency-Key
			}
			return followed(id, last.Seq)
		},
		hidden: func(ev *Event) bool {
			if id == "" {
				id = ev.TraceID
			}
			return ev.Type == keepalive
		},
		ends: isResult,
		abandon: func(ctx context.Context, c *Client, _ string, last *Event) {
			if last == nil {
				c.abandon(ctx, r)
				return
			}
			_, _ = c.CancelExecution(ctx, id) // it may have ended by now
		},
	})
}

// FollowExecution yields the events of an execution until its end. It starts behind the event
// with the seq after; 0 yields all events.
func (c *Client) FollowExecution(ctx context.Context, traceID string, after int64) iter.Seq2[Event, error] {
	return events(ctx, c, source[Event]{
		first: followed(traceID, after),
		again: func(last *Event) *request {
			if last == nil {
				return followed(traceID, after)
			}
			return followed(traceID, last.Seq)
		},
		hidden: func(ev *Event) bool { return ev.Type == keepalive },
		ends:   isResult,
	})
}

// WaitExecution waits for the end of an execution and returns its record.
func (c *Client) WaitExecution(ctx context.Context, traceID string) (Execution, error) {
	for _, err := range c.FollowExecution(ctx, traceID, 0) {
		if err != nil {
			return Execution{}, err
		}
	}
	return c.Execution(ctx, traceID)
}

const keepalive = "keepalive"

func isResult(ev *Event) bool { return ev.Type == "result" }

func followed(traceID string, after int64) *request {
	return &request{method: http.MethodGet, path: under("/v1/executions", traceID, "output"), query: url.Values{"after": {strconv.FormatInt(after, 10)}}, accept: mediaNDJSON}
}

// execution returns the request to run code. Its key makes it safe to repeat.
func (c *Client) execution(in ExecuteRequest, accept string) *request {
	return &request{method: http.MethodPost, path: executePath, in: in, accept: accept, header: http.Header{idempotencyKey: {c.newKey()}}}
}
