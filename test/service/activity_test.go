package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// activityEntry is an entry of GET /v1/activity.
type activityEntry struct {
	TraceID     string `json:"trace_id"`
	Kind        string
	Source      string
	Tool        string
	KeyName     string `json:"key_name"`
	Agent       string `json:"agent_id"`
	Session     string `json:"session_id"`
	Turn        string `json:"turn_id"`
	Environment string `json:"environment_name"`
	Sandbox     string `json:"sandbox_id"`
	Hash        string `json:"executed_code_hash"`
	Text        *string
	Status      string
	Credits     float64
	CostUSD     float64 `json:"cost_usd"`
}

// active lists a tenant's activity.
func active(t *testing.T, s *atolltest.Server, key, query string) []activityEntry {
	t.Helper()
	var page struct{ Data []activityEntry }
	s.Must(t, key, http.MethodGet, "/v1/activity?limit=100&"+query, nil).Into(t, http.StatusOK, &page)
	return page.Data
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestWhoRanWhat checks that the activity lists the calls of a session, a response and a caller with
// agent, session, turn, environment, result and cost. It shows a redacted text only if the tenant
// keeps texts, and shows nothing to other tenants.
func TestWhoRanWhat(t *testing.T) {
	s := shared(t)
	lendModel(t, s, "watched", obedient(t).URL)
	key, other := s.Tenant(t, "watched", "pro"), s.Tenant(t, "unwatched", "pro")
	sandbox := []any{map[string]string{"type": "sandbox"}}
	var agent, session struct{ ID string }
	var turn struct{ ID, Status string }
	s.Must(t, key, http.MethodPost, "/v1/agents", map[string]any{"name": "Watched", "model": map[string]string{"name": "watched"}, "tools": sandbox}).Into(t, http.StatusCreated, &agent)
	s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID}).Into(t, http.StatusCreated, &session)
	s.Must(t, key, http.MethodPost, "/v1/sessions/"+session.ID+"/events", message("run print(6 * 7)")).Into(t, http.StatusOK, &turn)
	if turn.Status != "completed" {
		t.Fatalf("the turn is %+v", turn)
	}

	of := active(t, s, key, "session_id="+session.ID)
	if len(of) != 3 { // two model requests, one call
		t.Fatalf("the session has %+v", of)
	}
	for _, e := range of {
		if e.Agent != agent.ID || e.Session != session.ID || e.Turn != turn.ID || e.KeyName != "main" || e.Environment != "main" || e.Status != "ok" || e.Text != nil {
			t.Errorf("an entry of the session is %+v", e)
		}
	}
	if code := of[1]; code.Kind != "code" || code.Tool != "run_code" || code.Hash != hashOf("print(6 * 7)") || code.Credits <= 0 {
		t.Errorf("the code is %+v", code)
	}
	if asked := of[0]; asked.Kind != "model" || asked.CostUSD <= 0 {
		t.Errorf("the question to the model is %+v", asked)
	}
	var trail struct {
		Data []struct {
			Source  string
			Agent   string `json:"agent_id"`
			Session string `json:"session_id"`
			Turn    string `json:"turn_id"`
		}
	}
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/watched/audit?source=response&turn_id="+turn.ID, nil).Into(t, http.StatusOK, &trail)
	if len(trail.Data) != 1 || trail.Data[0].Agent != agent.ID || trail.Data[0].Session != session.ID {
		t.Errorf("the audit trail has %+v", trail.Data)
	}

	var r struct{ ID string }
	s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "watched", "input": "run print(1)", "tools": sandbox}).Into(t, http.StatusOK, &r)
	if got := active(t, s, key, "turn_id="+r.ID); len(got) != 3 || got[1].Agent != "" || !strings.HasPrefix(got[1].Session, "sbx_") {
		t.Errorf("the response has %+v", got)
	}
	textsByPolicy(t, s, key)
	usedByAgents(t, s, key, agent.ID, session.ID)

	for what, got := range map[string][]activityEntry{
		"another tenant":             active(t, s, other, ""),
		"another tenant, by session": active(t, s, other, "session_id="+session.ID),
		"another agent":              active(t, s, key, "agent=agt_none"),
	} {
		if len(got) != 0 {
			t.Errorf("%s sees %+v", what, got)
		}
	}
	for what, test := range map[string]struct {
		key, path string
		status    int
	}{
		"a key of the tenant as administrator": {key, "/v1/admin/tenants/watched/activity", http.StatusForbidden},
		"an unknown tenant":                    {admin, "/v1/admin/tenants/nobody/activity", http.StatusNotFound},
		"a key of another tenant":              {key, "/v1/activity?key=unwatched", http.StatusBadRequest},
		"an unknown environment":               {key, "/v1/activity?environment=nowhere", http.StatusBadRequest},
		"a cursor of another list":             {key, "/v1/activity?page=abc", http.StatusBadRequest},
	} {
		if a := s.Must(t, test.key, http.MethodGet, test.path, nil); a.Status != test.status {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	var page struct{ Data []activityEntry }
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/watched/activity?kind=code&session_id="+session.ID, nil).Into(t, http.StatusOK, &page)
	if len(page.Data) != 1 || page.Data[0].Turn != turn.ID {
		t.Errorf("the administrator sees %+v", page.Data)
	}
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/watched/audit/verify", map[string]any{}).Into(t, http.StatusOK, nil)
}

// textsByPolicy checks that the activity shows only hashes of commands and code until the tenant keeps
// texts.
func textsByPolicy(t *testing.T, s *atolltest.Server, key string) {
	t.Helper()
	const secret = "swordfish-0123456789"
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/watched/environments/main", map[string]any{"secrets": map[string]string{"PASSWORD": secret}}).Into(t, http.StatusOK, nil)
	command := "echo " + secret + " > note"
	process := func() activityEntry {
		t.Helper()
		s.Must(t, key, http.MethodPost, "/v1/sandboxes/watched/processes", map[string]any{"command": command}).Into(t, http.StatusCreated, nil)
		got := active(t, s, key, "source=process&executed_code_hash="+hashOf(command))
		if len(got) == 0 || got[0].Kind != "command" || got[0].Sandbox == "" {
			t.Fatalf("the process is %+v", got)
		}
		return got[0]
	}
	s.Must(t, key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "watched"}).Into(t, http.StatusCreated, nil)
	if e := process(); e.Text != nil {
		t.Errorf("a tenant that keeps no texts has %q", *e.Text)
	}
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/watched", map[string]any{"audit_text": true}).Into(t, http.StatusOK, nil)
	atolltest.Until(t, 30*time.Second, "texts are kept", func() bool { return process().Text != nil })
	if e := process(); strings.Contains(*e.Text, secret) || !strings.HasPrefix(*e.Text, "echo ") {
		t.Errorf("the text is %q", *e.Text)
	}
	long := "# " + strings.Repeat("ä", 4000) + "\nprint('" + secret + "')"
	s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": long}).Into(t, http.StatusOK, nil)
	if e := active(t, s, key, "source=execute")[0]; e.Text == nil || len(*e.Text) > 4096 || !strings.HasSuffix(*e.Text, "ä…") {
		t.Errorf("the code is %+v", e)
	}
	s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print('" + secret + "')"}).Into(t, http.StatusOK, nil)
	if e := active(t, s, key, "source=execute")[0]; e.Text == nil || strings.Contains(*e.Text, secret) || !strings.HasPrefix(*e.Text, "print('") {
		t.Errorf("the code is %+v", e)
	}
}

// usedByAgents checks that the usage groups report the cost of an agent and its session.
func usedByAgents(t *testing.T, s *atolltest.Server, key, agent, session string) {
	t.Helper()
	type group struct {
		Agent     string `json:"agent_id"`
		Session   string `json:"session_id"`
		Calls     int
		Credits   float64
		Cost      float64
		Input     int  `json:"input_tokens"`
		Estimated *int `json:"estimated_tokens"`
	}
	var u struct{ Groups []group }
	for query, of := range map[string]string{"group_by=agent": "", "group_by=session": session, "group_by=session&session_id=" + session: session} {
		u.Groups = nil
		s.Must(t, key, http.MethodGet, "/v1/usage?"+query, nil).Into(t, http.StatusOK, &u)
		if len(u.Groups) != 1 || u.Groups[0].Agent != agent || u.Groups[0].Session != of || u.Groups[0].Credits <= 0 || u.Groups[0].Cost <= 0 || u.Groups[0].Input == 0 || u.Groups[0].Estimated == nil {
			text, _ := json.Marshal(u)
			t.Errorf("%s: %s", query, text)
		}
	}
	if s.Must(t, key, http.MethodGet, "/v1/usage?group_by=agent&agent="+url.QueryEscape("nobody"), nil).Into(t, http.StatusOK, &u); len(u.Groups) != 0 {
		t.Errorf("an unknown agent used %+v", u.Groups)
	}
}
