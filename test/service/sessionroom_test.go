package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/scriptedmodel"
)

// attack tries what a profile may forbid: to write, to start programs, to reach the web.
const attack = `run import atoll_web, os, socket, subprocess
def can(name, f):
  try: f(); print(name, "yes", end=" ")
  except Exception as e: print(name, "no", end=" ")
for d in "/home/user", "/tmp", "/var/tmp": can(d, lambda: open(d + "/a", "w").write("x"))
can("exec", lambda: subprocess.run(["true"]))
can("web", lambda: atoll_web.fetch("PAGE"))
can("net", lambda: socket.create_connection(("203.0.113.1", 80), 0.5))
ps = []
try:
  for _ in range(25): ps.append(subprocess.Popen(["sleep", "9"]))
except OSError: pass
print("processes", len(ps))
for p in ps: p.kill()`

// TestRoomOfASession has agents try to break out of each profile of permissions: with code, and
// with what the server does for them.
func TestRoomOfASession(t *testing.T) {
	s := shared(t)
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		where, fetch := strings.CutPrefix(said, "fetch ")
		if fetch && result == "" {
			arguments, err := json.Marshal(map[string]any{"urls": []string{where}})
			return scriptedmodel.Ask("call_1", "fetch_url", string(arguments)), err == nil
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	lendModel(t, s, "room", p.URL)
	s.Tenant(t, "room", "pro")
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/room", map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	key := func(name string, scopes ...string) string {
		var made struct{ Key string }
		s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/room/keys", map[string]any{"name": name, "environment": "main", "scopes": scopes}).Into(t, http.StatusCreated, &made)
		return made.Key
	}
	wide, narrow := key("wide", "execute", "read", "tools", "environments"), key("narrow", "execute", "read", "tools")
	s.Must(t, wide, http.MethodPost, "/v1/agents", map[string]any{
		"name": "Attacker", "slug": "attacker", "model": map[string]string{"name": "room"}, "tools": []any{map[string]string{"type": "sandbox"}, map[string]string{"type": "fetch_url"}},
	}).Into(t, http.StatusCreated, nil)
	page := searches.URL + "/page"
	for profile, want := range map[string]struct{ files, page string }{
		"unrestricted": {"/home/user yes /tmp yes /var/tmp yes exec yes web yes net yes processes 25", "Rings of coral"},
		"standard":     {"/home/user yes /tmp yes /var/tmp no exec yes web no net no processes 19", "does not allow 127.0.0.1"},
		"restricted":   {"/home/user yes /tmp yes /var/tmp no exec yes web no net no processes 9", "does not allow 127.0.0.1"},
		"isolated":     {"/home/user no /tmp yes /var/tmp no exec no web no net no processes 0", "does not allow 127.0.0.1"},
	} {
		t.Run(profile, func(t *testing.T) {
			s.Must(t, wide, http.MethodPost, "/v1/environments", map[string]any{"name": profile, "config": map[string]any{"permission_profile": profile}}).Into(t, http.StatusCreated, nil)
			begin := map[string]any{"agent_id": "attacker", "environment_id": profile}
			if a := s.Must(t, narrow, http.MethodPost, "/v1/sessions", begin); a.Status != http.StatusForbidden {
				t.Errorf("a key without the scope: %d %s", a.Status, a.Body)
			}
			var made struct{ ID string }
			s.Must(t, wide, http.MethodPost, "/v1/sessions", begin).Into(t, http.StatusCreated, &made)
			say := func(text, want string) {
				t.Helper()
				var turn sessionTurn
				s.Must(t, wide, http.MethodPost, "/v1/sessions/"+made.ID+"/events", message(text)).Into(t, http.StatusOK, &turn)
				if turn.Status != "completed" || !strings.Contains(turn.Content, want) {
					t.Errorf("%.20s…: %+v, want %q", text, turn, want)
				}
			}
			say(strings.ReplaceAll(attack, "PAGE", page), want.files)
			say("fetch "+page, want.page)
			if a := s.Must(t, narrow, http.MethodPost, "/v1/sessions/"+made.ID+"/events", message("say no")); a.Status != http.StatusConflict {
				t.Errorf("a message with a key of another environment: %d %s", a.Status, a.Body)
			}
			if profile != "isolated" {
				return
			}
			s.Must(t, wide, http.MethodDelete, "/v1/environments/"+profile, nil).Into(t, http.StatusNoContent, nil)
			a := s.Must(t, wide, http.MethodPost, "/v1/sessions/"+made.ID+"/events", message("say no"))
			if a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "is deleted") {
				t.Errorf("without the environment: %d %s", a.Status, a.Body)
			}
		})
	}
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
