package execute

import (
	"context"
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// execute runs code. It answers when that has ended, streams the output to a client that
// asks for NDJSON, or answers at once to one that prefers so.
func (h *Handlers) execute(c *httpapi.Call, in *ExecuteRequest) error {
	call := gateway.Call{Source: execution.SourceAPI, Delivery: delivery(c.R.Header)}
	key, err := httpapi.IdempotencyKey(c.R.Header)
	if err != nil {
		return err
	}
	call.IdempotencyKey = gateway.CallerKey(c.Caller, key)
	if c.Caller.Token != nil && (in.WebhookURL != nil || in.ThreadID != nil) {
		return errTokenBody
	}
	if in.WebhookURL != nil {
		if call.Delivery != execution.Async {
			return httpapi.Invalid("webhook_url needs Prefer: respond-async; without it the result is in the answer")
		}
		call.WebhookURL = string(*in.WebhookURL)
		if err := h.checkURL(c.Context(), call.WebhookURL); err != nil {
			return err
		}
	}
	req, err := in.request(h.Gateway.Policy(c.Caller))
	if err != nil {
		return err
	}
	req.TraceID = c.TraceID()
	if err := c.Draining(); err != nil {
		return err
	}

	ctx, stop := c.Living(c.Context())
	defer stop()
	e, err := h.Gateway.Execute(ctx, c.Caller, req, call)
	if err != nil {
		return c.Unfinished(ctx, req.TraceID, err)
	}
	c.W.Header().Set(httpapi.TraceHeader, e.TraceID) // of the earlier request that this one repeats
	switch call.Delivery {
	case execution.Streamed:
		patience := h.StartPatience
		if patience == 0 {
			patience = defaultStartPatience
		}
		return h.follow(c, e, httpapi.NDJSON, 0, patience)
	case execution.Async:
		c.W.Header().Set("Preference-Applied", "respond-async")
		c.W.Header().Set("Location", "/v1/executions/"+e.TraceID)
		return httpapi.WriteJSON(c.W, http.StatusAccepted, AcceptedResponse{TraceID: e.TraceID, Status: string(e.Status)})
	}
	return h.answer(ctx, c, e)
}

// errTokenBody refuses what is no bound of tokens: homes that others made, and URLs that the
// key's secret signs for.
var errTokenBody = fault.New(fault.Forbidden, "thread_id and webhook_url are not open to tokens: use an API key")

func (h *Handlers) checkURL(ctx context.Context, url string) error {
	if h.CheckURL == nil {
		return httpapi.Invalid("webhook_url is not available on this server")
	}
	return h.CheckURL(ctx, url)
}

// answer sends an execution that has ended.
func (h *Handlers) answer(ctx context.Context, c *httpapi.Call, e *execution.Execution) error {
	out, err := h.openOutputs(ctx, e)
	if err != nil {
		return c.Unfinished(ctx, e.TraceID, err)
	}
	defer out.Close()
	body := responseOf(e, takesCodes(c))
	body.note(e, out)
	if e.Status == execution.Timeout {
		if takesCodes(c) { // a refusal is what such a client makes of this status
			code := codeTimeout
			body.Error, body.ErrorMessage = &code, ""
		}
		httpapi.StartJSON(c.W, http.StatusGatewayTimeout)
		return out.write(c.W, TimeoutResponse{ExecuteResponse: *body, Message: e.Error, Code: codeTimeout})
	}
	httpapi.StartJSON(c.W, http.StatusOK)
	return out.write(c.W, body)
}

// openOutputs opens what answers show of e's output.
func (h *Handlers) openOutputs(ctx context.Context, e *execution.Execution) (outputs, error) {
	stdout, err := h.Gateway.Shown(ctx, e, execution.Stdout)
	if err != nil {
		return outputs{}, err
	}
	stderr, err := h.Gateway.Shown(ctx, e, execution.Stderr)
	if err != nil {
		return outputs{}, errors.Join(err, stdout.Close())
	}
	return outputs{stdout: stdout, stderr: stderr}, nil
}
