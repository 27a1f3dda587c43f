package service

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

type toolAnswer struct {
	OK           bool   `json:"ok"`
	Stdout       string `json:"stdout"`
	ExitStatus   string `json:"exit_status"`
	Error        string `json:"error"`
	ErrorMessage string `json:"error_message"`
	Dimension    string `json:"dimension"`
	ResetsAt     string `json:"resets_at"`
	TraceID      string `json:"trace_id"`
}

type trailRow struct {
	TraceID    string `json:"trace_id"`
	Source     string `json:"source"`
	Agent      string `json:"agent_id"`
	ExitStatus string `json:"exit_status"`
}

// TestExecuteCode checks the agent tool through a tenant's whole policy: each
// call, whatever comes of it, leaves exactly one audit row.
func TestExecuteCode(t *testing.T) {
	s := shared(t)
	key, admin := s.Tenant(t, "agents", "pro"), s.AdminKey(t)
	tenant := "/v1/admin/tenants/agents"
	calls := 0
	call := func(agent, turn, code string) toolAnswer {
		t.Helper()
		calls++
		var a toolAnswer
		s.Must(t, key, http.MethodPost, "/v1/tools/execute_code", map[string]any{
			"code": code, "agent": agent, "turn": turn, "template": "support",
		}).Into(t, http.StatusOK, &a)
		return a
	}
	refused := func(a toolAnswer, class, status string) {
		t.Helper()
		if a.OK || a.Error != class || a.ExitStatus != status || a.ErrorMessage == "" {
			t.Errorf("got %+v, want %s", a, class)
		}
	}

	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"sandbox_enabled": false}).Into(t, http.StatusOK, nil)
	refused(call("a", "1", "print(1)"), "SandboxProvisioning", "provisioning")
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"sandbox_enabled": true}).Into(t, http.StatusOK, nil)
	refused(call("a", "1", "print(1)"), "SandboxProvisioning", "provisioning") // there is no such template
	s.Must(t, admin, http.MethodPut, tenant+"/templates/support", map[string]any{"sandbox": map[string]string{"environment": "internal-only"}}).Into(t, http.StatusOK, nil)

	if a := call("a", "1", "open('kept', 'w').write('of turn 1'); print('written')"); !a.OK || a.Stdout != "written\n" || a.ExitStatus != "ok" {
		t.Errorf("got %+v", a)
	}
	if a := call("a", "1", "print(open('kept').read())"); !a.OK || a.Stdout != "of turn 1\n" {
		t.Errorf("a second call of the turn does not find what the first has written: %+v", a)
	}
	if a := call("a", "2", "print(open('kept').read())"); a.OK || a.ExitStatus != "error" {
		t.Errorf("another turn finds it: %+v", a)
	}
	if a := call("b", "1", "import os; print(os.path.exists('kept'))"); !a.OK || a.Stdout != "False\n" {
		t.Errorf("another agent finds it: %+v", a)
	}

	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"caps": map[string]any{"agent_hourly": 2}}).Into(t, http.StatusOK, nil)
	a := call("c", "1", "print(1)")
	if !a.OK {
		t.Errorf("got %+v", a)
	}
	if a = call("c", "1", "print(2)"); !a.OK {
		t.Errorf("the cap-th call does not pass: %+v", a)
	}
	a = call("c", "1", "print(3)")
	refused(a, "SandboxCapExceeded", "cap_exceeded")
	if a.Dimension != "agent_hourly" || a.ResetsAt == "" {
		t.Errorf("got %+v", a)
	}
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"caps": map[string]any{"tenant_daily": 0}}).Into(t, http.StatusOK, nil)
	refused(call("d", "1", "print(1)"), "SandboxCapExceeded", "cap_exceeded") // the kill switch

	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"tier": "regulated", "caps": map[string]any{}}).Into(t, http.StatusOK, nil)
	refused(call("e", "1", "print(1)"), "SandboxProvisioning", "provisioning")
	if a := s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"sandbox_enabled": true}); a.Status != http.StatusConflict {
		t.Errorf("a regulated tenant got the sandbox back: %d %s", a.Status, a.Body)
	}

	var trail struct{ Data []trailRow }
	s.Must(t, admin, http.MethodGet, tenant+"/audit?limit=100", nil).Into(t, http.StatusOK, &trail)
	seen := map[string]int{}
	for _, row := range trail.Data {
		seen[row.TraceID]++
		if row.Source != "execute_code" || row.Agent == "" {
			t.Errorf("row %+v", row)
		}
	}
	if len(trail.Data) != calls || len(seen) != calls {
		t.Errorf("%d calls left %d rows: %v", calls, len(trail.Data), trail.Data)
	}
	var report struct{ OK bool }
	checked := s.Must(t, admin, http.MethodPost, tenant+"/audit/verify", map[string]any{})
	checked.Into(t, http.StatusOK, &report)
	if !report.OK {
		t.Errorf("the trail does not verify: %s", checked.Body)
	}
	var events struct{ Data []struct{ Field string } }
	s.Must(t, admin, http.MethodGet, tenant+"/policy-events", nil).Into(t, http.StatusOK, &events)
	if text := fmt.Sprint(events); strings.Count(text, "sandbox_enabled") < 3 || !strings.Contains(text, "tier") {
		t.Errorf("policy events: %v", events)
	}
}
