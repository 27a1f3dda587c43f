package anthropic

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Failure is the body of every refusal.
type Failure struct {
	Type      string        `json:"type"`
	Error     FailureReason `json:"error"`
	RequestID string        `json:"request_id"`
}

// FailureReason says what is wrong.
type FailureReason struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// failures are the types of errors by their statuses.
var failures = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusConflict: "conflict_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusServiceUnavailable: "overloaded_error",
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	httpapi.WriteRefusal(w, err, func(status int, body httpapi.ErrorResponse) any {
		kind := failures[status]
		switch {
		case kind != "":
		case status >= http.StatusInternalServerError:
			kind = "api_error"
		default:
			kind = failures[http.StatusBadRequest]
		}
		return Failure{"error", FailureReason{kind, body.Message}, w.Header().Get(httpapi.TraceHeader)}
	})
}
