package tool_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/httpapitest"
)

const callBody = `{"code":"print hi","agent":"a","turn":"t","template":"support"`

func TestExecuteCode(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	s.Must(200, "PUT", "/v1/admin/tenants/test/templates/support", `{"sandbox":{"environment":"internal-only"}}`)
	s.Must(200, "PATCH", "/v1/admin/tenants/test", `{"sandbox_enabled":true}`)
	call := func(body string) map[string]any {
		t.Helper()
		w := httpapitest.Ask(s, "POST", "/v1/tools/execute_code", body)
		out := map[string]any{}
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || out["trace_id"] != w.Header().Get("X-Trace-Id") {
			t.Fatalf("%d %s %v", w.Code, w.Body, err)
		}
		return out
	}
	ok := call(callBody + `,"metadata":{"a":"b"},"timeout":5,"language":null}`)
	for field, want := range map[string]any{
		"ok": true, "stdout": "hi\n", "stderr": "", "exit_status": "ok", "exit_code": 0.0, "error": nil, "error_message": nil,
		"dimension": nil, "resets_at": nil, "stdout_truncated": false, "stderr_truncated": false,
	} {
		if got, there := ok[field]; !there || got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if failed := call(strings.Replace(callBody, "print hi", "exit 3", 1) + `}`); failed["ok"] != false || failed["exit_status"] != "error" ||
		failed["error"] != nil || failed["error_message"] != "the program exited with status 3" || failed["exit_code"] != 3.0 {
		t.Errorf("got %v", failed)
	}

	if w := httpapitest.Ask(s, "DELETE", "/v1/tools/turns/t?agent=a", ""); w.Code != 204 || len(s.Executor.EndedTurns()) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for path, says := range map[string]string{"t": "agent is required", "t?agent=%00": "NUL", "a%0Ab?agent=a": "turn is required", "t?agent=a&x=1": "unknown query parameter"} {
		if w := httpapitest.Ask(s, "DELETE", "/v1/tools/turns/"+path, ""); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}

	s.Must(200, "PATCH", "/v1/admin/caps", `{"agent_hourly":2}`)
	capped := call(callBody + `}`)
	if at, err := time.Parse(time.RFC3339, capped["resets_at"].(string)); capped["error"] != "SandboxCapExceeded" || capped["dimension"] != "agent_hourly" ||
		capped["exit_status"] != "cap_exceeded" || err != nil || time.Until(at) > time.Hour {
		t.Errorf("got %v", capped)
	}
	s.Must(200, "PATCH", "/v1/admin/tenants/test", `{"sandbox_enabled":false}`)
	if off := call(callBody + `}`); off["error"] != "SandboxProvisioning" || off["exit_status"] != "provisioning" || off["ok"] != false {
		t.Errorf("got %v", off)
	}
	if rows := s.Must(200, "GET", "/v1/admin/tenants/test/audit?source=execute_code&agent=a&session_id=t", "")["data"].([]any); len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestExecuteCodeRefusals(t *testing.T) {
	s := httpapitest.NewAdmin(t)
	for body, says := range map[string]string{
		`{"agent":"a","turn":"t","template":"x"}`:                                 "code is required",
		`{"code":"x","turn":"t","template":"x"}`:                                  "agent is required",
		`{"code":"x","agent":null,"turn":"t","template":"x"}`:                     "agent is required",
		`{"code":"x","agent":"a","template":"x"}`:                                 "turn is required",
		`{"code":"x","agent":"a","turn":"t"}`:                                     "template is required",
		`{"code":"x","agent":7,"turn":"t","template":"x"}`:                        "agent must be a string",
		`{"code":"x","agent":"a","turn":"t\u0000","template":"x"}`:                "turn is required: 1 to 128 characters",
		`{"code":"x","agent":"a","turn":"t","template":"x","timeout":0}`:          "timeout must be at least 1 second",
		`{"code":"x","agent":"a","turn":"t","template":"x","timeout":"5"}`:        "timeout must be an integer",
		`{"code":"x","agent":"a","turn":"t","template":"x","language":"perl"}`:    "language must be one of",
		`{"code":"x","agent":"a","turn":"t","template":"x","language":""}`:        "language must be one of",
		`{"code":"x","agent":"a","turn":"t","template":"x","metadata":{"":""}}`:   "metadata key",
		`{"code":"x","agent":"a","turn":"t","template":"x","env_vars":{"A":"b"}}`: `unknown field \"env_vars\"`,
		`{"code":"","agent":"a","turn":"t","template":"x"}`:                       "code must be between",
		`{"code":"x","agent":"a","turn":"t","template":"../x"}`:                   "template is required",
		`{"code":"x","agent":"a","turn":"t","template":"x","code":"y"}`:           "duplicate field",
	} {
		if w := httpapitest.Ask(s, "POST", "/v1/tools/execute_code", body); w.Code != 400 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: got %d %s, want %q", body, w.Code, w.Body, says)
		}
	}
	if w := httpapitest.Ask(s, "GET", "/v1/tools/execute_code", ""); w.Code != 405 {
		t.Errorf("got %d", w.Code)
	}
	if w := httpapitest.Ask(s, "POST", "/v1/tools/execute_code", callBody+`}`, "Authorization", "Bearer "+s.AdminKey); w.Code != 403 {
		t.Errorf("a key without the scope: %d %s", w.Code, w.Body)
	}
	if w := httpapitest.Ask(s, "POST", "/v1/tools/execute_code", callBody+`}`, "Authorization", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("no key: %d %s", w.Code, w.Body)
	}
	if rows := s.Must(200, "GET", "/v1/admin/tenants/test/audit", "")["data"].([]any); len(rows) != 0 {
		t.Errorf("mistakes left %d rows", len(rows))
	}
}
