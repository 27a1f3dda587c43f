package service

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// TestKeptOutputs fills what a plan lets its tenant keep with real outputs and files: the
// refusal says what makes room, and that does.
func TestKeptOutputs(t *testing.T) {
	s := shared(t)
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPut, "/v1/admin/plans/scanty", map[string]any{"max_output": 1 << 20, "max_outputs": 100_000}).Into(t, http.StatusOK, nil)
	key, other := s.Tenant(t, "keeper", "scanty"), s.Tenant(t, "keeper-other", "scanty")
	execute := func(key, code string, status int, outputs ...string) (id string, said refusal) {
		t.Helper()
		a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code, "outputs": outputs})
		if a.Status >= 400 {
			a.Into(t, status, &said)
		}
		if a.Status != status {
			t.Fatalf("%d %s, want %d", a.Status, a.Body, status)
		}
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); status == http.StatusTooManyRequests && (err != nil || wait < 24*3600) {
			t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
		}
		return a.Header.Get("X-Trace-Id"), said
	}
	type kept struct {
		Outputs struct {
			Bytes, Limit int64
			ResetsAt     string `json:"resets_at"`
		}
	}
	wantKept := func(bytes int64) {
		t.Helper()
		for who, path := range map[string]string{key: "/v1/usage", admin: "/v1/admin/tenants/keeper/usage"} {
			var k kept
			s.Must(t, who, http.MethodGet, path, nil).Into(t, http.StatusOK, &k)
			if k.Outputs.Bytes != bytes || k.Outputs.Limit != 100_000 || (k.Outputs.ResetsAt == "") != (bytes == 0) {
				t.Errorf("%s says %+v, want %d bytes", path, k.Outputs, bytes)
			}
		}
	}
	wantKept(0)
	printed, _ := execute(key, "print('x' * 59_999)", 200)
	wantKept(60_000)
	gave, _ := execute(key, "open('f', 'w').write('y' * 50_000)", 200, "f") // passes the bound
	wantKept(110_000)

	id, said := execute(key, "print(1)", http.StatusTooManyRequests)
	if said.Error != "rate_limited" || said.Dimension != "outputs" || !strings.Contains(said.Message, "(max_outputs). Delete executions and responses that you do not need, or wait") {
		t.Errorf("it was refused with %+v", said)
	}
	s.Must(t, key, http.MethodGet, "/v1/executions/"+id, nil).Into(t, http.StatusNotFound, nil)
	execute(other, "print(1)", 200)

	s.Must(t, other, http.MethodDelete, "/v1/executions/"+gave, nil).Into(t, http.StatusNotFound, nil)
	wantKept(110_000)
	s.Must(t, key, http.MethodDelete, "/v1/executions/"+gave, nil).Into(t, http.StatusNoContent, nil)
	wantKept(60_000)
	s.Must(t, key, http.MethodGet, "/v1/executions/"+gave+"/file?path=f", nil).Into(t, http.StatusNotFound, nil)
	execute(key, "print(1)", 200)
	s.Must(t, key, http.MethodDelete, "/v1/executions/"+printed, nil).Into(t, http.StatusNoContent, nil)
	wantKept(2)

	// A response began with room, and its calls fill that: it ends before the next one.
	lendModel(t, s, "hoarder", hoarder(t).URL)
	var filled struct {
		Status string
		Error  struct{ Code, Message string }
		Output []struct{ Type, Status string }
	}
	s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{
		"model": "hoarder", "input": "continue", "tools": []any{map[string]any{"type": "sandbox"}, map[string]any{"type": "code_interpreter", "container": map[string]string{"type": "auto"}}},
	}).Into(t, http.StatusOK, &filled)
	if filled.Status != "failed" || filled.Error.Code != "quota_exceeded" || !strings.Contains(filled.Error.Message, "(max_outputs)") || len(filled.Output) != 3 || filled.Output[2].Status == "completed" {
		t.Errorf("it came to %+v", filled)
	}
}

// hoarder is a provider whose model prints 60,000 bytes twice, and then wants another tool.
func hoarder(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		items, _ := r.Body["input"].([]any)
		calls := 0
		for _, it := range items {
			if item, _ := it.(map[string]any); item["type"] == "function_call_output" {
				calls++
			}
		}
		if calls < 2 {
			return scriptedmodel.Ask("call_"+strconv.Itoa(calls), "run_code", `{"language": "python", "code": "print('x' * 59_999)"}`), true
		}
		return scriptedmodel.Ask("call_"+strconv.Itoa(calls), "code_interpreter", `{"code": "1"}`), true
	}})
	t.Cleanup(p.Close)
	return p
}
