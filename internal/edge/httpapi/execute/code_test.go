package execute_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestCodesForThePublishedClient checks what a client that takes error for a code is told,
// and that no other is.
func TestCodesForThePublishedClient(t *testing.T) {
	s := httpapitest.New(t)
	client := []string{"X-Client-Id", "baponi-python/direct"}
	for code, want := range map[string]string{
		`{"code":"oom"}`:               `"error":"memory_limit_exceeded","error_message":"memory limit of 512 MiB exceeded"`,
		`{"code":"sleep","timeout":1}`: `"error":"gateway_timeout"`,
		`{"code":"print hello"}`:       `"error":null`,
	} {
		if w := httpapitest.Post(s, code, client...); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", code, w.Body)
		}
		if w := httpapitest.Post(s, code, "X-Client-Id", "mine"); strings.Contains(w.Body.String(), "memory_limit_exceeded") || strings.Contains(w.Body.String(), "error_message") {
			t.Errorf("%s, another client: %s", code, w.Body)
		}
	}
	streamed := httpapitest.Post(s, `{"code":"oom"}`, append(client, "Accept", httpapi.NDJSON)...)
	if !strings.Contains(streamed.Body.String(), `"error":"memory_limit_exceeded"`) {
		t.Errorf("stream: %s", streamed.Body)
	}
	record := decoded[execute.Execution](t, httpapitest.Ask(s, "GET", "/v1/executions/"+httpapitest.TraceID(streamed), "", client...))
	if *record.Error != "memory_limit_exceeded" || record.ErrorMessage != "memory limit of 512 MiB exceeded" {
		t.Errorf("record: %+v", record)
	}
}

// TestOldTraceIDsOpen checks that the ids of older records are still looked for.
func TestOldTraceIDsOpen(t *testing.T) {
	s := httpapitest.New(t)
	id := run(t, s, `{"code":"print hello"}`)
	old := "trc_" + strings.Repeat("0f", 16)
	if _, err := s.DB.SQL().ExecContext(t.Context(), "UPDATE executions SET trace_id = ? WHERE trace_id = ?", old, id); err != nil {
		t.Fatal(err)
	}
	if record := decoded[execute.Execution](t, httpapitest.Ask(s, "GET", "/v1/executions/"+old, "")); record.TraceID != old {
		t.Errorf("got %+v", record)
	}
}
