package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// page is a page of the web that has a token.
type page struct {
	testing.TB
	s     *atolltest.Server
	token string
	from  string // its origin; "" sends none
}

// token has a key make a token, and returns it with its id.
func token(t testing.TB, s *atolltest.Server, key string, body map[string]any) (p page, id string) {
	t.Helper()
	var made struct{ ID, Token string }
	s.Must(t, key, http.MethodPost, "/v1/tokens", body).Into(t, http.StatusCreated, &made)
	if !strings.HasPrefix(made.Token, "tk-atoll-") || !strings.HasPrefix(made.ID, "tok_") {
		t.Fatalf("%+v", made)
	}
	return page{TB: t, s: s, token: made.Token}, made.ID
}

func (p page) call(method, path string, body any) *atolltest.Answer {
	p.Helper()
	header := http.Header{}
	if p.from != "" {
		header.Set("Origin", p.from)
	}
	a, err := p.s.Call(p.Context(), p.token, method, path, body, header)
	if err != nil {
		p.Fatal(err)
	}
	return a
}

// want calls and wants a status, and words in the message of a refusal.
func (p page) want(status int, says, method, path string, body any) *atolltest.Answer {
	p.Helper()
	a := p.call(method, path, body)
	if a.Status != status || !strings.Contains(string(a.Body), says) {
		p.Errorf("%s %s: %d %s, want %d %q", method, path, a.Status, a.Body, status, says)
	}
	return a
}

// TestTokens: what a token is for works, and nothing else does.
func TestTokens(t *testing.T) {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	const execute, tokens = "/v1/sandbox/execute", "/v1/tokens"
	s := shared(t)
	key := s.Tenant(t, "tokens", "enterprise")
	other := s.Tenant(t, "tokens-other", "enterprise")
	model := httptest.NewServer(&scriptedmodel.Provider{Next: func(scriptedmodel.Request) (scriptedmodel.Turn, bool) { return scriptedmodel.Say("Hello."), true }})
	t.Cleanup(model.Close)
	lendModel(t, s, "spent", model.URL)
	code := func(text string) map[string]any { return map[string]any{"code": text} }

	t.Run("operations and executions", func(t *testing.T) {
		p, id := token(t, s, key, map[string]any{"operations": []string{"runProgram", "getExecution"}, "max_executions": 2})
		trace := p.want(200, "said", post, execute, code("print('said')")).Header.Get("X-Trace-Id")
		p.want(200, `"key":"`+id, get, "/v1/executions/"+trace, nil)
		p.want(403, "not for the operation", get, "/v1/executions/"+trace+"/output", nil)
		p.want(403, "thread_id", post, execute, map[string]any{"code": "1", "thread_id": "t"})
		p.want(200, "", post, execute, code("1"))
		p.want(429, "token_executions", post, execute, code("1"))
		for path, method := range map[string]string{"/v1/executions": get, tokens: get, tokens + "/" + id: del, "/v1/usage": get, "/v1/environments": get, "/v1/admin/tenants": get, "/mcp": del, "/v1/skills": get} {
			p.want(403, "", method, path, nil)
		}
		p.want(403, "", post, tokens, map[string]any{"scopes": []string{"read"}})
		var list struct{ Data []struct{ ID, Token string } }
		s.Must(t, key, get, tokens, nil).Into(t, 200, &list)
		if len(list.Data) == 0 || list.Data[0].ID != id || list.Data[0].Token != "" {
			t.Errorf("the list: %+v", list)
		}
		s.Must(t, other, del, tokens+"/"+id, nil).Into(t, 404, nil)
		s.Must(t, key, del, tokens+"/"+id, nil).Into(t, 204, nil)
		p.want(401, "", get, "/v1/executions/"+trace, nil)
		trail := s.Must(t, s.AdminKey(t), get, "/v1/admin/tenants/tokens/audit?limit=1", nil)
		if !strings.Contains(string(trail.Body), id) {
			t.Errorf("the audit trail does not name the token: %s", trail.Body)
		}
	})
	t.Run("origins", func(t *testing.T) {
		p, _ := token(t, s, key, map[string]any{"scopes": []string{"execute"}, "origins": []string{"https://app.example.com"}})
		p.want(403, "Origin", get, "/v1/models", nil)
		p.from = "https://evil.example"
		p.want(403, "Origin", get, "/v1/models", nil)
		p.from = "https://app.example.com"
		p.want(200, "", get, "/v1/models", nil)
	})
	t.Run("a sandbox", func(t *testing.T) {
		for _, name := range []string{"mine", "beside"} {
			s.Must(t, key, post, "/v1/sandboxes", map[string]any{"name": name}).Into(t, 201, nil)
			defer s.Must(t, key, del, "/v1/sandboxes/"+name, nil)
		}
		p, _ := token(t, s, key, map[string]any{"sandbox": "mine"})
		p.want(201, "", post, "/v1/sandboxes/mine/processes", map[string]any{"command": "true"})
		p.want(200, "", get, "/v1/sandboxes/mine", nil)
		p.want(403, "bound to the sandbox", get, "/v1/sandboxes/beside", nil)
		p.want(403, "bound to the sandbox", get, "/v1/sandboxes/mine?session=else", nil)
		p.want(403, "about more", post, execute, code("1"))
		p.want(403, "about more", post, "/v1/sandboxes", map[string]any{"name": "third"})
		p.want(403, "not open", post, "/v1/sandboxes/mine/fork", nil)
		p.want(403, "not open", get, "/v1/sandboxes", nil)
		var ticket struct{ Ticket string }
		p.want(201, "", post, "/v1/sandboxes/mine/terminal/ticket", nil).Into(t, 201, &ticket)
		if a := s.Must(t, "", get, "/v1/sandboxes/beside/terminal?ticket="+ticket.Ticket, nil); a.Status != 403 {
			t.Errorf("its ticket opens another sandbox: %d %s", a.Status, a.Body)
		}
	})
	t.Run("spending", func(t *testing.T) {
		p, id := token(t, s, key, map[string]any{"operations": []string{"createResponse", "getResponse"}, "max_cost": 0.000001})
		body := map[string]any{"model": "spent", "input": "Hello?"}
		p.want(200, "Hello.", post, "/v1/responses", body)
		p.want(429, "token_cost", post, "/v1/responses", body)
		p.want(403, "not for the operation", post, execute, code("1"))
		var list struct {
			Data []struct {
				ID   string
				Cost float64
			}
		}
		s.Must(t, key, get, tokens, nil).Into(t, 200, &list)
		if i := slices.IndexFunc(list.Data, func(v struct {
			ID   string
			Cost float64
		}) bool {
			return v.ID == id
		}); i < 0 || list.Data[i].Cost < 0.000001 {
			t.Errorf("the list does not say what it spent: %+v", list)
		}
	})
	t.Run("a session", func(t *testing.T) {
		var agent, one, two struct{ ID string }
		s.Must(t, key, post, "/v1/agents", map[string]any{"name": "Helper", "model": map[string]string{"name": "spent"}}).Into(t, 201, &agent)
		s.Must(t, key, post, "/v1/sessions", map[string]any{"agent_id": agent.ID}).Into(t, 201, &one)
		s.Must(t, key, post, "/v1/sessions", map[string]any{"agent_id": agent.ID}).Into(t, 201, &two)
		p, _ := token(t, s, key, map[string]any{"session": one.ID, "max_cost": 1})
		p.want(200, one.ID, get, "/v1/sessions/"+one.ID, nil)
		p.want(403, "bound to the session", get, "/v1/sessions/"+two.ID, nil)
		p.want(403, "not open", get, "/v1/sessions", nil)
		p.want(403, "not open", del, "/v1/sessions/"+one.ID, nil)
		s.Must(t, other, post, tokens, map[string]any{"session": one.ID}).Into(t, 404, nil)

		events := "/v1/sessions/" + one.ID + "/events"
		confirm := map[string]any{"type": "tool_confirmation", "tool_use_id": "evt_1", "approve": true}
		outcome := map[string]any{"type": "user.define_outcome", "description": "Say hello.", "rubric": "It says hello."}
		check := map[string]any{"type": "user.define_outcome", "description": "Say hello.", "check": map[string]any{"command": "true"}}
		for _, body := range []any{confirm, outcome, check} {
			p.want(403, "create it with the right", post, events, body)
		}
		p, _ = token(t, s, key, map[string]any{"session": one.ID, "rights": []string{"confirm", "outcomes"}})
		p.want(404, "", post, events, confirm)
		p.want(403, "check runs a command", post, events, check)
		s.Must(t, key, post, tokens, map[string]any{"session": one.ID, "rights": []string{"everything"}}).Into(t, 400, nil)
	})
	t.Run("with the key", func(t *testing.T) {
		var made struct{ ID, Key string }
		keys := "/v1/admin/tenants/tokens/keys"
		s.Must(t, s.AdminKey(t), post, keys, map[string]any{"name": "short", "environment": "main", "scopes": []string{"read", "execute"}}).Into(t, 201, &made)
		p, _ := token(t, s, made.Key, map[string]any{"scopes": []string{"read", "execute"}, "expires_in": 3600})
		p.want(200, "", post, execute, code("1"))
		s.Must(t, s.AdminKey(t), http.MethodPatch, keys+"/"+made.ID, map[string]any{"scopes": []string{"read"}}).Into(t, 200, nil)
		p.want(403, "lacks the scope", post, execute, code("1"))
		p.want(404, "", get, "/v1/executions/trc_"+strings.Repeat("a", 20), nil)
		s.Must(t, made.Key, post, tokens, map[string]any{"scopes": []string{"execute"}}).Into(t, 403, nil)
		s.Must(t, s.AdminKey(t), del, keys+"/"+made.ID, nil).Into(t, 200, nil)
		p.want(401, "", get, "/v1/models", nil)
	})
	t.Run("in time", func(t *testing.T) {
		p, _ := token(t, s, key, map[string]any{"scopes": []string{"read"}, "expires_in": 1})
		atolltest.Until(t, 20*time.Second, "the token expires", func() bool { return p.call(get, "/v1/models", nil).Status == 401 })
	})
	for body, says := range map[string]string{
		`{}`: "name what the token is for", `{"scopes":["admin"]}`: "a token can have", `{"scopes":[]}`: "at least one scope", `{"operations":["nothing"]}`: "not open to tokens", `{"operations":["createToken"]}`: "not open to tokens",
		`{"scopes":["read"],"expires_in":86401}`: "86400", `{"scopes":["read"],"expires_in":0}`: "expires_in", `{"scopes":["read"],"origins":["https://App.example.com"]}`: "not a web origin", `{"scopes":["read"],"origins":[]}`: "at least one origin",
		`{"scopes":["read"],"max_cost":0}`: "max_cost", `{"scopes":["read"],"max_executions":0}`: "max_executions", `{"operations":["startProcess"],"max_executions":1}`: "neither counts", `{"operations":["runProgram"],"max_cost":1}`: "counts no executions",
		`{"operations":["runProgram"],"scopes":["read"]}`: "needs the scope execute", `{"scopes":["read"],"sandbox_session":"x"}`: "goes with sandbox", `{"session":"sess_x","sandbox":"y"}`: "bound to one",
	} {
		if a := s.Must(t, key, post, tokens, json.RawMessage(body)); a.Status != 400 || !strings.Contains(string(a.Body), says) {
			t.Errorf("%s: %d %s, want %q", body, a.Status, a.Body, says)
		}
	}
	s.Must(t, key, post, tokens, map[string]any{"sandbox": "none"}).Into(t, 404, nil)
	s.Must(t, s.AdminKey(t), post, tokens, map[string]any{"sandbox": "none"}).Into(t, 403, nil)
	if a := s.Must(t, "tk-atoll-"+fmt.Sprintf("%040d", 0), get, "/v1/models", nil); a.Status != 401 {
		t.Errorf("an unknown token: %d", a.Status)
	}
}
