package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestErrorsAreHarmless checks that the command removes terminal control characters from a server's
// error message.
func TestErrorsAreHarmless(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"x","message":"no \u001b[31m\u009b31m\u202esuch\r agent"}`)
	}))
	defer s.Close()
	env := map[string]string{"ATOLL_BASE_URL": s.URL, "ATOLL_API_KEY": "sk-atoll-x"}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"agent", "list"}, func(name string) string { return env[name] }, stdio{strings.NewReader(""), &out, &errs})
	if text := errs.String(); code != exitFailure || !strings.Contains(text, "such") || strings.ContainsAny(text, "\x1b\u009b\u202e\r") {
		t.Errorf("ended with %d: %q", code, text)
	}
}
