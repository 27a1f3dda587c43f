package service

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// confirmations answers calls that wait, one of which an earlier server asked for.
func confirmations(t *testing.T, k *talker, id string) {
	s := k.line.now()
	var narrow struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/talker/keys", map[string]any{"name": "reader", "environment": "main", "scopes": []string{"read"}}).Into(t, http.StatusCreated, &narrow)
	reader := &talker{t, k.line, narrow.Key, k.path}
	refused := func(what string, a *atolltest.Answer, status int) {
		t.Helper()
		if a.Status != status {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	refused("a key without the right", reader.post(confirm(id, true)), http.StatusForbidden)
	for who, want := range map[string]int{"stranger": http.StatusNotFound, "elsewhere": http.StatusConflict, "revoked": http.StatusUnauthorized} {
		refused("a key that is "+who, (&talker{t, k.line, otherKey(t, s, who), k.path}).post(confirm(id, true)), want)
	}
	refused("a message instead", k.post(message("say no")), http.StatusConflict)
	refused("a result instead", k.post(map[string]any{"type": "tool_result", "tool_use_id": id, "content": "25"}), http.StatusConflict)
	refused("another call", k.post(confirm("sevt_"+strings.Repeat("0", 32)+"_1", true)), http.StatusNotFound)
	if n := len(k.events("&types=tool_confirmation")); n != 0 {
		t.Errorf("%d confirmations that were refused are recorded", n)
	}
	k.send(confirm(id, true), "completed", "25")
	refused("twice", k.post(confirm(id, true)), http.StatusConflict)
	refused("twice, otherwise", k.post(confirm(id, false)), http.StatusConflict)

	id = k.send(message("run print(1)"), "requires_action", "").RequiresAction[0].ToolUseID
	no := confirm(id, false)
	no["reason"] = "not on Sundays"
	k.send(no, "completed", "not on Sundays")
	decided := k.events("&types=tool_confirmation")
	if len(decided) != 2 || !*decided[0].Approve || *decided[1].Approve || decided[1].ToolUse != id || decided[0].KeyID == "" {
		t.Errorf("%+v", decided)
	}
	var trail struct {
		Data []struct {
			Source   string
			Metadata map[string]string
		}
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/talker/audit?limit=100", nil).Into(t, http.StatusOK, &trail)
	var rows []map[string]string
	for _, row := range trail.Data {
		if row.Source == "confirmation" {
			rows = append(rows, row.Metadata)
		}
	}
	if len(rows) != 2 || rows[0]["decision"] != "denied" || rows[1]["decision"] != "approved" || rows[1]["tool"] != "run_code" {
		t.Errorf("the audit trail has %+v", rows)
	}

	id = k.send(message("run print(4)"), "requires_action", "").RequiresAction[0].ToolUseID
	atOnce(t, k, id)
	k.send(message("run print(2)"), "requires_action", "")
	k.line.now().Must(t, k.key, http.MethodPost, k.path+"/interrupt", nil).Into(t, http.StatusOK, nil)
	k.send(message("say done"), "completed", "done")
	id = k.send(message("run print(3)"), "requires_action", "").RequiresAction[0].ToolUseID
	k.line.now().Must(t, k.key, http.MethodPost, k.path+"/archive", nil).Into(t, http.StatusOK, nil)
	refused("after archiving", k.post(confirm(id, true)), http.StatusConflict)
	k.line.now().Must(t, k.key, http.MethodDelete, k.path, nil).Into(t, http.StatusNoContent, nil)
	refused("after deleting", k.post(confirm(id, true)), http.StatusNotFound)

	k = k.begin(map[string]any{"tools": []any{map[string]string{"type": "sandbox"}}, "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}, "confirm_within": 1}})
	id = k.send(message("run print(5)"), "requires_action", "").RequiresAction[0].ToolUseID
	k.reach("", func(e sessionEvent) bool { return e.StopReason.Type == "expired" })
	refused("after it has expired", k.post(confirm(id, true)), http.StatusConflict)
	if got := k.events("&types=tool_confirmation"); len(got) != 1 || *got[0].Approve || got[0].KeyID != "" {
		t.Errorf("what has expired is %+v", got)
	}
	k.send(message("say on"), "completed", "on")
}

// otherKey makes a key that may not decide for the tenant talker: of a stranger, of another
// environment, or one that is revoked.
func otherKey(t *testing.T, s *atolltest.Server, who string) string {
	t.Helper()
	if who == "stranger" {
		return s.Tenant(t, who, "pro")
	}
	admin, base := s.AdminKey(t), "/v1/admin/tenants/talker"
	var made struct{ ID, Key string }
	s.Must(t, admin, http.MethodPost, base+"/environments", map[string]any{"name": who, "image": atolltest.Image}).Into(t, http.StatusCreated, nil)
	environment := who
	if who == "revoked" {
		environment = "main"
	}
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{"name": who, "environment": environment}).Into(t, http.StatusCreated, &made)
	if who == "revoked" {
		s.Must(t, admin, http.MethodDelete, base+"/keys/"+who, nil).Into(t, http.StatusOK, nil)
	}
	return made.Key
}

// atOnce has 20 clients decide over a call at the same time, half of them against it: one of
// them does, and what it decided holds.
func atOnce(t *testing.T, k *talker, id string) {
	var won atomic.Int64
	var said sync.Map
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a, err := k.line.now().Call(t.Context(), k.key, http.MethodPost, k.path+"/events", confirm(id, i%2 == 0), nil)
			switch {
			case err != nil:
				t.Error(err)
			case a.Status == http.StatusOK:
				won.Add(1)
				said.Store(i%2 == 0, string(a.Body))
			case a.Status != http.StatusConflict:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	last := k.events("&types=tool_confirmation&order=desc")[0]
	content, ok := said.Load(*last.Approve)
	if won.Load() != 1 || !ok || last.ToolUse != id || strings.Contains(fmt.Sprint(content), `stdout:\n4`) != *last.Approve {
		t.Errorf("%d decisions, of which %s is recorded, and the answer is %v", won.Load(), last.raw, content)
	}
}
