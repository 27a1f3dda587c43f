// Package openaiwire defines the JSON that OpenAI's clients use for both responses and containers:
// refusals, and the options of a new container.
package openaiwire

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Compat makes operations refuse requests as OpenAI's clients expect.
func Compat() *httpapi.Compat {
	return &httpapi.Compat{Refuse: refuse, Refusal: ResponseRefusal{}}
}

// ResponseRefusal is the body of a refusal, as the clients of this API read it.
type ResponseRefusal struct {
	Error   ResponseRefusalDetail `json:"error" required:"true" doc:"The same in the form that OpenAI's clients read."`
	Message string                `json:"message" required:"true" doc:"The same message."`

	Dimension string     `json:"dimension,omitzero" doc:"With rate_limited: which limit it is, such as outputs or responses."`
	ResetsAt  *time.Time `json:"resets_at,omitzero" nullable:"false" doc:"With rate_limited: when the limit starts again, if it does."`
}

// ResponseRefusalDetail describes the error.
type ResponseRefusalDetail struct {
	Message string  `json:"message" required:"true"`
	Type    string  `json:"type" required:"true"`
	Code    string  `json:"code" required:"true" doc:"Error code for programs."`
	Param   *string `json:"param" required:"true" nullable:"true" doc:"The field that is wrong; null where it is none."`
}

// ExternalError is the type, and in responses the code, of a failure of another server.
const ExternalError = "external_connector_error"

// ErrorType returns the type of the error of an answer with that status.
func errorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusFailedDependency:
		return ExternalError
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	httpapi.WriteRefusal(w, err, func(status int, body httpapi.ErrorResponse) any {
		return ResponseRefusal{
			Error:   ResponseRefusalDetail{Message: body.Message, Type: errorType(status), Code: body.Error},
			Message: body.Message, Dimension: body.Dimension, ResetsAt: body.ResetsAt,
		}
	})
}
