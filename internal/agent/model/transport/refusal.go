package transport

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/model"
)

// maxMessage limits the characters of a provider's message that Atoll shows.
const maxMessage = 1000

// maxRetryAfter limits the wait that a provider can ask for.
const maxRetryAfter = 24 * time.Hour

// Said is the error that a provider reported.
type Said struct{ Message, Type, Code string }

// ReadError decodes the error in a response body or in an event of a stream. It accepts
// {"error": {"message", "type", "code"}}, {"error": "text"}, {"message"} and {"detail"}, each
// also as the first element of an array.
func ReadError(body []byte) Said {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	var outer struct {
		Error, Detail, Code, Message, Type, Status json.RawMessage
	}
	if json.Unmarshal(body, &outer) != nil {
		return Said{}
	}
	text := func(raw json.RawMessage) (s string) {
		if json.Unmarshal(raw, &s) != nil && len(raw) > 0 && raw[0] != '{' && raw[0] != 'n' {
			s = string(raw)
		}
		return s
	}
	var inner struct{ Message, Type, Code, Status json.RawMessage }
	_ = json.Unmarshal(outer.Error, &inner) // it may be a text
	return Said{
		Message: cmp.Or(text(inner.Message), text(outer.Error), text(outer.Message), text(outer.Detail)),
		Type:    cmp.Or(text(inner.Type), text(inner.Status), text(outer.Type)),
		Code:    cmp.Or(text(inner.Code), text(outer.Code)),
	}
}

// refusal returns the error for a response without success.
func refusal(res *http.Response, body []byte, key string) error {
	said := ReadError(body)
	e := &model.Error{
		Failure: failureOf(res.StatusCode, said), Status: res.StatusCode, RequestID: RequestID(res.Header), RetryAfter: retryAfter(res.Header),
	}
	if res.Header.Get("X-Should-Retry") == "false" && e.Retryable() {
		e.Failure = model.Rejected
	}
	told := said.Message
	if told == "" {
		told = http.StatusText(res.StatusCode)
	}
	e.Msg = fmt.Sprintf("the provider answered %d: %s", res.StatusCode, Scrub(told, key))
	if res.StatusCode == http.StatusUnauthorized { // providers repeat parts of the key
		e.Msg = "the provider rejects the key it was given (401)"
	}
	return e
}

// Streamed returns the error for an error event in a stream.
func Streamed(said Said, requestID, key string) error {
	e := &model.Error{Failure: failureOf(0, said), RequestID: requestID}
	told := cmp.Or(said.Message, said.Code, said.Type, "an error without a message")
	e.Msg = "the provider's answer ended with an error: " + Scrub(told, key)
	if e.Failure == model.Unauthorized {
		e.Msg = "the provider rejects the key it was given"
	}
	return e
}

// byName maps the types and codes of providers' errors to failures.
var byName = map[string]model.Failure{
	"context_length_exceeded": model.ContextTooLong, "request_too_large": model.ContextTooLong, "string_above_max_length": model.ContextTooLong,
	"rate_limit_exceeded": model.RateLimited, "rate_limit_error": model.RateLimited, "too_many_requests": model.RateLimited, "resource_exhausted": model.RateLimited,
	"insufficient_quota": model.Rejected, "billing_error": model.Rejected, "invalid_request_error": model.Rejected, "not_found_error": model.Rejected, "invalid_prompt": model.Rejected,
	"authentication_error": model.Unauthorized, "permission_error": model.Unauthorized, "invalid_api_key": model.Unauthorized,
	"overloaded_error": model.Transient, "api_error": model.Transient, "server_error": model.Transient, "timeout_error": model.Transient, "internal_error": model.Transient, "unavailable": model.Transient,
}

// tooLong lists lower-case parts of messages that report a context overflow.
var tooLong = []string{"maximum context length", "prompt is too long", "context window", "context length", "context size", "input is too long", "too many input tokens", "exceeds the maximum number of tokens", "input token count"}

func failureOf(status int, said Said) model.Failure {
	message := strings.ToLower(said.Message)
	for _, name := range []string{said.Code, said.Type} {
		f, known := byName[strings.ToLower(name)]
		switch {
		case !known, f == model.Rejected && status != http.StatusTooManyRequests: // a message may say more
		case f == model.Transient && status >= 400 && status < 500 && status != http.StatusTooManyRequests: // the status says more
		default:
			return f
		}
	}
	if status == 0 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		for _, part := range tooLong {
			if strings.Contains(message, part) {
				return model.ContextTooLong
			}
		}
	}
	switch {
	case status == 0: // within a stream, where a number may be a status
		if n, err := strconv.Atoi(said.Code); err == nil && n >= 400 && n < 600 {
			return failureOf(n, Said{Message: said.Message})
		}
		for _, name := range []string{said.Code, said.Type} {
			if byName[strings.ToLower(name)] == model.Rejected {
				return model.Rejected
			}
		}
		return model.Transient
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.Unauthorized
	case status == http.StatusRequestEntityTooLarge:
		return model.ContextTooLong
	case status == http.StatusTooManyRequests:
		return model.RateLimited
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return model.Transient
	}
	return model.Rejected
}

// retryAfter returns the wait that a provider asks for, at most maxRetryAfter.
func retryAfter(h http.Header) time.Duration {
	clip := func(d time.Duration) time.Duration { return min(max(d, 0), maxRetryAfter) }
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		return clip(time.Duration(ms * float64(time.Millisecond)))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e9 {
		return clip(time.Duration(s * float64(time.Second)))
	}
	if at, err := http.ParseTime(text); err == nil {
		return clip(time.Until(at))
	}
	return 0
}

// RequestID returns a provider's id of a request.
func RequestID(h http.Header) string {
	return cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id"), h.Get("X-Generation-Id"))
}

// covered replaces a key.
const covered = "[key]"

// Scrub makes a provider's text safe to show. It redacts the key in every form that a server may
// repeat, joins lines, and limits the length.
func Scrub(text, key string) string {
	if key != "" {
		for _, form := range []string{key, url.QueryEscape(key), url.PathEscape(key), base64.StdEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key))} {
			text = strings.ReplaceAll(text, form, covered)
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
	if utf8.RuneCountInString(text) > maxMessage {
		text = string([]rune(text)[:maxMessage]) + "…"
	}
	return text
}
