package e2b

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Failure is the body of every refusal of the REST API and of files.
type Failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// unsupported refuses what E2B has and Atoll has not.
func unsupported(format string, args ...any) error {
	return httpapi.Invalid(format, args...)
}

const goneMessage = "The sandbox was not found"

// statusFull is E2B's status for a disk without space.
const statusFull = http.StatusInsufficientStorage

// told is err as E2B's statuses have it.
func told(err error) error {
	if g, ok := errors.AsType[*sandboxes.Unreachable](err); ok { // clients know it by "was not found"
		return &httpapi.ProtocolError{Status: http.StatusBadGateway, Message: goneMessage + ": " + httpapi.Reason(g.Unwrap())}
	}
	if _, body := httpapi.Render(err); body.Error == "disk_full" || body.Dimension == "disk" {
		return &httpapi.ProtocolError{Status: statusFull, Message: body.Message}
	}
	return err
}

func failureOf(status int, body httpapi.ErrorResponse) Failure { return Failure{status, body.Message} }

// render turns an error into what the client is told.
func render(err error) Failure { return failureOf(httpapi.Render(told(err))) }

// refuse answers a request of the REST API, or one about a file or code.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	httpapi.WriteRefusal(w, told(err), func(status int, body httpapi.ErrorResponse) any { return failureOf(status, body) })
}

// codes are those of the Connect protocol, by the status that REST has for the same.
var codes = map[int]connect.Code{
	http.StatusBadRequest: connect.CodeInvalidArgument, http.StatusUnauthorized: connect.CodeUnauthenticated,
	http.StatusForbidden: connect.CodePermissionDenied, http.StatusNotFound: connect.CodeNotFound,
	http.StatusConflict: connect.CodeFailedPrecondition, http.StatusRequestTimeout: connect.CodeDeadlineExceeded,
	http.StatusRequestEntityTooLarge: connect.CodeInvalidArgument, http.StatusUnsupportedMediaType: connect.CodeInvalidArgument,
	http.StatusTooManyRequests: connect.CodeResourceExhausted, statusFull: connect.CodeResourceExhausted,
	http.StatusBadGateway: connect.CodeUnavailable, http.StatusServiceUnavailable: connect.CodeUnavailable,
}

// callError is err as the Connect protocol has it.
func callError(err error) *connect.Error {
	if known, ok := errors.AsType[*connect.Error](err); ok {
		if known.Code() == connect.CodeInternal || known.Code() == connect.CodeUnknown { // said of bytes alone that are not the protocol's
			return connect.NewError(connect.CodeInvalidArgument, errors.New(known.Message()))
		}
		return known
	}
	if errors.Is(err, httpapi.ErrShutdown) {
		return connect.NewError(connect.CodeUnavailable, httpapi.ErrShutdown)
	}
	if fault.KindOf(err) == fault.Internal && errors.Is(err, context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the time that the request set is over"))
	}
	if fault.KindOf(err) == fault.Internal && errors.Is(err, context.Canceled) {
		return connect.NewError(connect.CodeCanceled, errors.New("the request was cancelled"))
	}
	why := render(err)
	code, ok := codes[why.Code]
	if !ok {
		code = connect.CodeInternal
	}
	out := connect.NewError(code, errors.New(why.Message))
	httpapi.Advise(out.Meta(), told(err))
	return out
}

var errorWriter = connect.NewErrorWriter()

// refuseCall answers a call of the Connect protocol.
func refuseCall(w http.ResponseWriter, r *http.Request, err error) {
	_ = errorWriter.Write(w, r, callError(err)) // a failed write means that the client has gone
}
