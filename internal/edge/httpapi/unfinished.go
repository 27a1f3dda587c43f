package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/gateway"
)

// Unfinished returns the 502 for a request that ends before its execution, or before the gateway
// has recorded how the execution ended; err itself for every other failure. ctx is from Living.
func (c *Call) Unfinished(ctx context.Context, traceID string, err error) error {
	var says string
	switch {
	case errors.Is(err, gateway.ErrUnrecorded):
		c.Log().WarnContext(ctx, "cannot record the end of an execution yet", "trace_id", traceID, "error", err)
		says = "the program has run, but how it ended cannot be recorded right now: see"
	case errors.Is(err, gateway.ErrUnreadable): // not 503, which would say that nothing ran
		c.Log().WarnContext(ctx, "cannot read the output of an execution", "trace_id", traceID, "error", err)
		says = "the program has run, but its output cannot be read right now: retry"
	case errors.Is(err, ErrShutdown) && errors.Is(context.Cause(ctx), ErrShutdown):
		says = "the server is shutting down and the execution may continue: see"
	default:
		return err
	}
	return &ProtocolError{Status: http.StatusBadGateway, Code: "bad_gateway", Message: says + " GET /v1/executions/" + traceID}
}
