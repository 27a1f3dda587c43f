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

// abandonTime bounds how long a call that was given up takes to end what it began.
const abandonTime = 5 * time.Second

// Execute runs code and returns its result, once it has ended. A program that runs out of its
// time is an *Error with the code ErrProgramTimeout, which has the Result. When ctx ends before
// the program does, the program is ended too. An answer that is lost is asked for again by its
// Idempotency-Key, so that nothing runs twice.
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

// abandoning returns a context and a client for the calls that end what a call began whose own
// context has ended. The client has no timeout besides: the caller's may be too short.
func (c *Client) abandoning(ctx context.Context) (context.Context, *Client, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	return ctx, c.With(WithTimeout(0)), cancel
}

// abandon ends the execution that a request began or may begin yet. The same request with
// the same key tells its id; one that has not begun begins, and is ended at once.
func (c *Client) abandon(ctx context.Context, r *request) {
	r.header.Set("Prefer", "respond-async")
	begun, err := answer[AcceptedResponse](ctx, c, r)
	if err != nil || begun.Status != "running" {
		return // it has ended, or the server is away; its own timeout ends it then
	}
	_, _ = c.CancelExecution(ctx, begun.TraceID) // it may have ended by now
}

// StartExecution begins to run code, and returns at once. Its end is told to its webhook, or
// waited for with WaitExecution.
func (c *Client) StartExecution(ctx context.Context, in ExecuteRequest) (AcceptedResponse, error) {
	r := c.execution(in, mediaJSON)
	r.header.Set("Prefer", "respond-async")
	return answer[AcceptedResponse](ctx, c, r)
}

// StreamExecution runs code and yields its events as they happen; the last has the type result.
// When ctx ends before, the program is ended too; a caller who only leaves the loop lets it go
// on.
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

// FollowExecution yields the events of an execution after the one with a seq, 0 for all of
// them, until its end.
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

// WaitExecution waits for the end of an execution, and returns its record.
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

// execution is the request to run code. Its key makes it safe to repeat.
func (c *Client) execution(in ExecuteRequest, accept string) *request {
	return &request{method: http.MethodPost, path: executePath, in: in, accept: accept, header: http.Header{idempotencyKey: {c.newKey()}}}
}
