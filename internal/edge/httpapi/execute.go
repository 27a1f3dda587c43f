package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// postExecute runs code. It answers when that has ended, streams the output to
// a client that asks for NDJSON, or answers at once to one that prefers so.
func (s *Server) postExecute(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	body, err := readRequest(w, r)
	if err != nil {
		return err
	}
	call := gateway.Call{Source: execution.SourceAPI, Delivery: delivery(r.Header)}
	if call.IdempotencyKey, err = idempotencyKey(r.Header); err != nil {
		return err
	}
	in, err := decodeExecute(body)
	if err != nil {
		return err
	}
	if in.WebhookURL != nil {
		if call.Delivery != execution.Async {
			return invalid("webhook_url needs Prefer: respond-async; without it the result is in the answer")
		}
		call.WebhookURL = string(*in.WebhookURL)
		if err := s.checkURL(r.Context(), call.WebhookURL); err != nil {
			return err
		}
	}
	req, err := in.request(s.gateway.Policy(caller))
	if err != nil {
		return err
	}
	req.TraceID = traceOf(w)
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}

	ctx, stop := s.living(r.Context())
	defer stop()
	e, err := s.gateway.Execute(ctx, caller, req, call)
	if err != nil {
		return s.parted(ctx, req.TraceID, err)
	}
	w.Header().Set(traceHeader, e.TraceID) // of the earlier request that this one repeats
	switch call.Delivery {
	case execution.Streamed:
		return s.follow(w, r, e, ndjson, 0, s.startPatience)
	case execution.Async:
		w.Header().Set("Preference-Applied", "respond-async")
		w.Header().Set("Location", "/v1/executions/"+e.TraceID)
		return writeJSON(w, http.StatusAccepted, AcceptedResponse{TraceID: e.TraceID, Status: string(e.Status)})
	}
	return s.answer(ctx, w, e)
}

// answer sends an execution that has ended.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, e *execution.Execution) error {
	out, err := s.openOutputs(ctx, e)
	if err != nil {
		return err
	}
	defer out.Close()
	body := toWire(e)
	if e.Status == execution.Timeout {
		startJSON(w, http.StatusGatewayTimeout)
		return writeWith(w, TimeoutResponse{ExecuteResponse: *body, Message: e.Error, Code: codeTimeout}, out)
	}
	startJSON(w, http.StatusOK)
	return writeWith(w, body, out)
}

// openOutputs opens what answers show of e's output.
func (s *Server) openOutputs(ctx context.Context, e *execution.Execution) (outputs, error) {
	stdout, err := s.gateway.Shown(ctx, e, execution.Stdout)
	if err != nil {
		return outputs{}, err
	}
	stderr, err := s.gateway.Shown(ctx, e, execution.Stderr)
	if err != nil {
		return outputs{}, errors.Join(err, stdout.Close())
	}
	return outputs{stdout, stderr}, nil
}

// parted says what becomes of an execution whose request ends before it, or
// before its record, when that is why err happened.
func (s *Server) parted(ctx context.Context, traceID string, err error) error {
	if errors.Is(err, gateway.ErrUnrecorded) {
		s.log.WarnContext(ctx, "an end is not recorded yet", "trace_id", traceID, "error", err)
		return &protocolError{http.StatusBadGateway, "bad_gateway", "the program has run, but how it ended cannot be recorded at the moment: see GET /v1/executions/" + traceID}
	}
	if !errors.Is(context.Cause(ctx), errShutdown) || !errors.Is(err, errShutdown) {
		return err
	}
	return &protocolError{http.StatusBadGateway, "bad_gateway", "the server is shutting down and the execution may go on: see GET /v1/executions/" + traceID}
}

// delivery is how a client wants the result. To be told later wins over a
// stream: the client said that it will not stay.
func delivery(h http.Header) execution.Delivery {
	switch {
	case prefersAsync(h):
		return execution.Async
	case accepts(h, ndjson):
		return execution.Streamed
	}
	return execution.Inline
}

// maxIdempotencyKey is the most characters of an Idempotency-Key.
const maxIdempotencyKey = 255

// idempotencyKey returns the request's Idempotency-Key, "" if it has none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	ok := len(keys) == 1 && len(key) >= 1 && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		ok = ok && key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return "", invalid("Idempotency-Key must be given once, with 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	return key, nil
}

// prefersAsync reports whether the client asked for 202 and a webhook.
func prefersAsync(h http.Header) bool {
	for _, line := range h.Values("Prefer") {
		for pref := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(pref, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// accepts reports whether the client names media as acceptable. Wildcards do
// not count: what is not named gets the default.
func accepts(h http.Header, media string) bool {
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, err := mime.ParseMediaType(part)
			if err != nil || name != media {
				continue
			}
			if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}
