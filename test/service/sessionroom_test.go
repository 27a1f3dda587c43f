package service

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// TestRoomOfASession has keys with and without the scope for it choose where a session is, until
// its environment is deleted.
func TestRoomOfASession(t *testing.T) {
	s := shared(t)
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) { return obey(conversation(r.Body)) }})
	t.Cleanup(p.Close)
	lendModel(t, s, "room", p.URL)
	s.Tenant(t, "room", "pro")
	admin := s.AdminKey(t)
	key := func(name string, scopes ...string) string {
		var made struct{ Key string }
		s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/room/keys", map[string]any{"name": name, "environment": "main", "scopes": scopes}).Into(t, http.StatusCreated, &made)
		return made.Key
	}
	wide, narrow := key("wide", "execute", "read", "tools", "sandboxes", "environments"), key("narrow", "execute", "read", "tools", "sandboxes")
	s.Must(t, wide, http.MethodPost, "/v1/agents", map[string]any{"name": "Guest", "slug": "guest", "model": map[string]string{"name": "room"}, "tools": []any{map[string]string{"type": "sandbox"}}}).Into(t, http.StatusCreated, nil)
	s.Must(t, wide, http.MethodPost, "/v1/environments", map[string]any{"name": "apart", "config": map[string]any{"permission_profile": "isolated"}}).Into(t, http.StatusCreated, nil)
	refused := func(what string, a *atolltest.Answer, status int, says string) {
		t.Helper()
		if a.Status != status || !strings.Contains(string(a.Body), says) {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	begin := map[string]any{"agent_id": "guest", "environment_id": "apart"}
	refused("a key without the scope", s.Must(t, narrow, http.MethodPost, "/v1/sessions", begin), http.StatusForbidden, "environments")
	var made struct{ ID string }
	s.Must(t, wide, http.MethodPost, "/v1/sessions", begin).Into(t, http.StatusCreated, &made)
	events := "/v1/sessions/" + made.ID + "/events"
	var turn sessionTurn
	s.Must(t, wide, http.MethodPost, events, message("run import os; os.fork()")).Into(t, http.StatusOK, &turn)
	if turn.Status != "completed" || !strings.Contains(turn.Content, "Operation not permitted") {
		t.Errorf("%+v", turn)
	}
	refused("a key of another environment", s.Must(t, narrow, http.MethodPost, events, message("say no")), http.StatusConflict, "environment")
	s.Must(t, wide, http.MethodPost, "/v1/sessions/"+made.ID+"/tools/write_file", map[string]any{"path": "/tmp/a", "content": "x"}).Into(t, http.StatusOK, nil)
	var stopped struct{ Blocked string }
	s.Must(t, wide, http.MethodPost, "/v1/sessions/"+made.ID+"/tools/shell", map[string]any{"command": "ls; exit 1"}).Into(t, http.StatusOK, &stopped)
	if !strings.Contains(stopped.Blocked, "allow_exec") {
		t.Errorf("a command that may start no program names the rule %q", stopped.Blocked)
	}
	var list struct {
		Data []struct {
			ID string `json:"sandbox_id"`
		}
	}
	s.Must(t, wide, http.MethodGet, "/v1/sandboxes?session="+made.ID, nil).Into(t, http.StatusOK, &list)
	if len(list.Data) != 1 {
		t.Fatalf("a session in another environment has the sandboxes %+v", list)
	}
	s.Must(t, wide, http.MethodGet, "/v1/sandboxes/"+list.Data[0].ID+"?session="+made.ID, nil).Into(t, http.StatusOK, nil)
	refused("sandboxes for a key of another environment", s.Must(t, narrow, http.MethodGet, "/v1/sandboxes?session="+made.ID, nil), http.StatusConflict, "scope environments")
	s.Must(t, wide, http.MethodDelete, "/v1/environments/apart", nil).Into(t, http.StatusNoContent, nil)
	refused("without the environment", s.Must(t, wide, http.MethodPost, events, message("say no")), http.StatusConflict, "is deleted")
}

// tells has a session tell its state to a webhook, signed with the secret of its key.
func tells(t *testing.T, k *talker, hooks *receiver) {
	s := k.line.now()
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/talker/keys/main", map[string]any{"webhook_secret": "a-secret-of-the-key"}).Into(t, http.StatusOK, nil)
	var made struct{ ID string }
	s.Must(t, k.key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": "asking", "webhook_url": hooks.URL}).Into(t, http.StatusCreated, &made)
	k.path = "/v1/sessions/" + made.ID
	k.send(message("run print(1)"), "requires_action", "")
	s.Must(t, k.key, http.MethodPost, k.path+"/archive", nil).Into(t, http.StatusOK, nil)
	var told []string
	for _, h := range hooks.await("", 2, time.Minute) { // they name no execution
		told = append(told, h.Event)
		if !h.signed("a-secret-of-the-key") || !strings.Contains(string(h.body), made.ID) {
			t.Errorf("%s is signed with %s", h.body, h.signature)
		}
	}
	slices.Sort(told)
	if !slices.Equal(told, []string{"session.requires_action", "session.terminated"}) {
		t.Errorf("told %q", told)
	}
}
