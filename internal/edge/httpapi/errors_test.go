package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestFaultTable(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
		msg    string
	}{
		{fault.New(fault.Conflict, "busy"), 409, "conflict", "busy"},
		{fault.Limit("concurrency", time.Time{}, "limit (5/5)"), 429, "rate_limited", "limit (5/5)"},
		{fault.Wrap(fault.Unavailable, errors.New("secret"), "no sandbox"), 503, "service_unavailable", "no sandbox"},
		{fmt.Errorf("secret: %w", fault.New(fault.Forbidden, "no")), 403, "forbidden", "no"},
		{fault.New(fault.NotFound, ""), 404, "not_found", "Not Found"},
		{errors.New("secret"), 500, "internal_error", "the server's log"},
		{fault.Wrap(fault.Internal, errors.New("secret"), "secret"), 500, "internal_error", "the server's log"},
		{fault.New(fault.Kind(200), "secret"), 500, "internal_error", "secret"},
	} {
		w := httptest.NewRecorder()
		w.Header().Set(TraceHeader, execution.NewTraceID())
		writeError(w, c.err)
		var body ErrorResponse
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != c.status || body.Error != c.code || !strings.Contains(body.Message, c.msg) {
			t.Errorf("%v: got %d %s", c.err, w.Code, w.Body)
		}
		if got := w.Header().Get("Retry-After") != ""; got != (c.status == 503) {
			t.Errorf("Retry-After on %d: %v", c.status, got)
		}
	}
	w := httptest.NewRecorder()
	resets := time.Now().Add(90 * time.Second).UTC()
	writeError(w, fault.Limit("credits", resets, "no more"))
	var body ErrorResponse
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Dimension != "credits" || body.ResetsAt == nil || !body.ResetsAt.Equal(resets) || w.Header().Get("Retry-After") != "90" {
		t.Errorf("a limit that resets: %s %s", w.Header(), w.Body)
	}
}

func TestAccepts(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                       false,
		"*/*":                                    false,
		"application/*":                          false,
		"application/json":                       false,
		"application/x-ndjson":                   true,
		"Application/X-NDJSON":                   true,
		"text/html, application/x-ndjson;q=0.9":  true,
		"application/x-ndjson;q=0":               false,
		"application/x-ndjson-but-longer":        false,
		"application/json, application/x-ndjson": true,
	} {
		if got := Accepts(http.Header{"Accept": {accept}}, NDJSON); got != want {
			t.Errorf("%q: got %v", accept, got)
		}
	}
}
