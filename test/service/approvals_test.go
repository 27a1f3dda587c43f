package service

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// approvalRecord is an approval in the form of GET /v1/approvals.
type approvalRecord struct {
	ID        string
	Status    string
	Session   *string    `json:"session_id"`
	Turn      *string    `json:"turn_id"`
	ToolUse   *string    `json:"tool_use_id"`
	Response  *string    `json:"response_id"`
	Agent     *string    `json:"agent_id"`
	Tool      string     `json:"tool"`
	Server    *string    `json:"server"`
	Arguments string     `json:"arguments"`
	Expires   *time.Time `json:"expires_at"`
	By        *string    `json:"decided_by"`
	Reason    *string    `json:"reason"`
	Continued *string    `json:"continued_by"`
}

// inbox lists approvals.
func inbox(t *testing.T, s *atolltest.Server, key, query string) []approvalRecord {
	t.Helper()
	var page struct{ Data []approvalRecord }
	s.Must(t, key, http.MethodGet, "/v1/approvals?"+query, nil).Into(t, http.StatusOK, &page)
	return page.Data
}

func verdict(t *testing.T, s *atolltest.Server, key, id string, body map[string]any, status int) (a approvalRecord) {
	t.Helper()
	answer := s.Must(t, key, http.MethodPost, "/v1/approvals/"+id, body)
	if answer.Status != status {
		t.Errorf("%v: %d %s", body, answer.Status, answer.Body)
	}
	_ = json.Unmarshal(answer.Body, &a)
	return a
}

// TestApprovals checks that one inbox lists the waiting calls of sessions and responses, that the inbox
// or their clients can decide each call once, and that calls expire at their deadline, even while no
// server runs.
func TestApprovals(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1")
	s := line.now()
	key, other := s.Tenant(t, "inbox", "pro"), s.Tenant(t, "elsewhere", "pro")
	addModel(t, s, "scripted", toolCaller(t).URL)
	k := &talker{t, line, key, ""}
	asking := map[string]any{"tools": []any{map[string]string{"type": "sandbox"}}, "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}}}
	code := func(text string) string {
		arguments, _ := json.Marshal(map[string]string{"language": "python", "code": text})
		return "run_code " + string(arguments)
	}
	t.Run("session", func(t *testing.T) { approvalsOfSession(t, &talker{t, line, key, ""}, asking, code, other) })
	second := "/v1/admin/tenants/inbox"
	s.Must(t, s.AdminKey(t), http.MethodPost, second+"/environments", map[string]any{"name": "second", "image": atolltest.Image}).Into(t, http.StatusCreated, nil)
	var elsewhere struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, second+"/keys", map[string]any{"name": "second", "environment": "second"}).Into(t, http.StatusCreated, &elsewhere)
	t.Run("response", func(t *testing.T) { approvalsOfResponse(t, s, key, other, elsewhere.Key) })
	t.Run("secrets", func(t *testing.T) {
		const secret = "correct-horse-battery-staple"
		s.Must(t, s.AdminKey(t), http.MethodPatch, second+"/environments/main", map[string]any{"secrets": map[string]string{"PASSWORD": secret}}).Into(t, http.StatusOK, nil)
		id := waitingCall(t, k.on(t).begin(asking), code("print('"+secret+"')"))
		for _, reader := range []string{key, elsewhere.Key} { // the second key is bound to another environment
			if a := s.Must(t, reader, http.MethodGet, "/v1/approvals/"+id, nil); a.Status != http.StatusOK || strings.Contains(string(a.Body), secret) || !strings.Contains(string(a.Body), "print") {
				t.Errorf("the inbox shows %d %s", a.Status, a.Body)
			}
		}
		verdict(t, s, key, id, map[string]any{"approve": false}, http.StatusOK)
	})
	t.Run("command line", func(t *testing.T) { approvalsByHand(t, k.on(t).begin(asking), code) })
	t.Run("tokens", func(t *testing.T) {
		id := waitingCall(t, k.on(t).begin(asking), code("print(1)"))
		for right, status := range map[string]int{"outcomes": http.StatusForbidden, "confirm": http.StatusOK} {
			var made struct{ Token string }
			s.Must(t, key, http.MethodPost, "/v1/tokens", map[string]any{"operations": []string{"decideApproval", "getApproval"}, "rights": []string{right}}).Into(t, http.StatusCreated, &made)
			verdict(t, s, made.Token, id, map[string]any{"approve": true}, status)
			if a := s.Must(t, made.Token, http.MethodGet, "/v1/approvals", nil); a.Status != http.StatusForbidden {
				t.Errorf("a token lists approvals: %d", a.Status)
			}
		}
	})

	// The deadline passes while no server runs.
	within := map[string]any{"tools": asking["tools"], "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}, "confirm_within": 2}}
	late := k.begin(within)
	id := waitingCall(t, late, code("print(2)"))
	var a approvalRecord
	s.Must(t, key, http.MethodGet, "/v1/approvals/"+id, nil).Into(t, http.StatusOK, &a)
	line.next(syscall.SIGKILL, func() {
		atolltest.Until(t, time.Minute, "the deadline passes", func() bool { return time.Now().After(*a.Expires) })
	})
	s = line.now()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "the call expires", func() bool {
		s.Must(t, key, http.MethodGet, "/v1/approvals/"+id, nil).Into(t, http.StatusOK, &a)
		return a.Status == "expired"
	})
	if a.Expires == nil || a.Reason == nil || *a.Reason != "no answer until "+a.Expires.UTC().Truncate(time.Second).Format(time.RFC3339) || a.By != nil {
		t.Errorf("expired as %+v", a)
	}
	verdict(t, s, key, id, map[string]any{"approve": true}, http.StatusConflict)
	told := late.events("&types=tool_confirmation")
	if len(told) != 1 || *told[0].Approve || !strings.Contains(told[0].raw, *a.Reason) {
		t.Errorf("the session was told %+v", told)
	}
	late.send(message("run_code {\"language\":\"python\",\"code\":\"1\"}"), "requires_action", "")
}

// approvalsByHand decides with the command line.
func approvalsByHand(t *testing.T, k *talker, code func(string) string) {
	u := newAsker(t, k.line.now().URL, k.key)
	u.first = "approvals"
	id := waitingCall(t, k, code("print(6)"))
	if out := u.ask(0, "", "list"); !strings.Contains(out, id) || !strings.Contains(out, "pending") || !strings.Contains(out, "run_code") || !strings.Contains(out, "print(6)") {
		t.Errorf("the list is %q", out)
	}
	if out := u.ask(0, "", "deny", id, "--reason", "too late today"); !strings.Contains(out, "denied") || !strings.Contains(out, "turn_") {
		t.Errorf("denied: %q", out)
	}
	u.ask(1, "", "approve", id)
	u.told("the approval was already decided")
	if out := u.ask(0, "", "list", "--status", "denied"); !strings.Contains(out, "too late today") {
		t.Errorf("the list is %q", out)
	}
	u.first = "activity"
	if out := u.ask(0, "", "--since", "24h", "--kind", "confirmation"); !strings.Contains(out, "main agt_") || !strings.Contains(out, "run_code") {
		t.Errorf("the activity is %q", out)
	}
}

// waitingCall makes a session request a call that needs a confirmation, and returns its approval.
func waitingCall(t *testing.T, k *talker, say string) string {
	t.Helper()
	k.send(message(say), "requires_action", "")
	_, id, _ := strings.Cut(k.path, "/sessions/")
	got := inbox(t, k.line.now(), k.key, "session_id="+id)
	if len(got) != 1 {
		t.Fatalf("the inbox has %+v", got)
	}
	return got[0].ID
}

func approvalsOfSession(t *testing.T, k *talker, agent map[string]any, code func(string) string, other string) {
	s := k.line.now()
	k = k.begin(agent)
	id := waitingCall(t, k, code("print(20 + 1)"))
	got := inbox(t, s, k.key, "")
	if len(got) != 1 || got[0].ID != id || got[0].Status != "pending" || got[0].Tool != "run_code" || !strings.Contains(got[0].Arguments, "20 + 1") || got[0].Agent == nil || got[0].Turn == nil ||
		got[0].ToolUse == nil || got[0].Response != nil || got[0].Expires == nil || time.Until(*got[0].Expires) < 6*24*time.Hour {
		t.Fatalf("the inbox has %+v", got)
	}
	if of := inbox(t, s, k.key, "agent="+*got[0].Agent); len(of) != 1 {
		t.Errorf("the agent's are %+v", of)
	}
	if len(inbox(t, s, other, "status=all")) != 0 {
		t.Error("another tenant sees the approval")
	}
	verdict(t, s, other, id, map[string]any{"approve": true}, http.StatusNotFound)
	if a := s.Must(t, other, http.MethodGet, "/v1/approvals/"+id, nil); a.Status != http.StatusNotFound {
		t.Errorf("another tenant reads it: %d %s", a.Status, a.Body)
	}
	verdict(t, s, k.key, "apr_nothing", map[string]any{"approve": true}, http.StatusNotFound)
	verdict(t, s, k.key, id, map[string]any{"approve": true, "reason": strings.Repeat("x", 5<<10)}, http.StatusBadRequest)
	verdict(t, s, k.key, id, map[string]any{}, http.StatusBadRequest)

	// Of concurrent decisions, exactly one succeeds.
	var won atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, err := s.Call(t.Context(), k.key, http.MethodPost, "/v1/approvals/"+id, map[string]any{"approve": true}, nil)
			if err != nil || a.Status != http.StatusOK && a.Status != http.StatusConflict {
				t.Errorf("%v %+v", err, a)
			} else if a.Status == http.StatusOK {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d decided", won.Load())
	}
	k.reach("", func(e sessionEvent) bool { return e.Type == "message" && strings.Contains(e.raw, "21") })
	k.until("idle")
	if got := inbox(t, s, k.key, "status=approved"); len(got) != 1 || got[0].By == nil || got[0].Continued == nil || !strings.HasPrefix(*got[0].Continued, "turn_") {
		t.Errorf("approved are %+v", got)
	}

	id = waitingCall(t, k, code("print(3)"))
	if a := verdict(t, s, k.key, id, map[string]any{"approve": false, "reason": "not on Sundays"}, http.StatusOK); a.Status != "denied" || a.Reason == nil || *a.Reason != "not on Sundays" {
		t.Errorf("denied as %+v", a)
	}
	k.reach("", func(e sessionEvent) bool { return e.Type == "message" && strings.Contains(e.raw, "not on Sundays") })
	k.until("idle")
	// The inbox reflects decisions of the session's own client, and interrupts.
	id = waitingCall(t, k, code("print(4)"))
	k.send(confirm(*inbox(t, s, k.key, "")[0].ToolUse, true), "completed", "4")
	verdict(t, s, k.key, id, map[string]any{"approve": true}, http.StatusConflict)
	waitingCall(t, k, code("print(5)"))
	s.Must(t, k.key, http.MethodPost, k.path+"/interrupt", nil).Into(t, http.StatusOK, nil)
	if got := inbox(t, s, k.key, "status=cancelled"); len(got) != 1 || len(inbox(t, s, k.key, "")) != 0 || len(inbox(t, s, k.key, "status=all")) != 4 {
		t.Errorf("cancelled are %+v", got)
	}
	s.Must(t, k.key, http.MethodDelete, k.path, nil).Into(t, http.StatusNoContent, nil)
	if got := inbox(t, s, k.key, "status=all"); len(got) != 0 {
		t.Errorf("a deleted session leaves %+v", got)
	}
}

func approvalsOfResponse(t *testing.T, s *atolltest.Server, key, other, elsewhere string) {
	var orders atomic.Int64
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(shop, &mcp.Tool{Name: "order"}, func(context.Context, *mcp.CallToolRequest, struct{ What string }) (*mcp.CallToolResult, any, error) {
		orders.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is on its way"}}}, nil, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, nil))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	tools := []any{map[string]any{"type": "mcp", "server_label": "shop", "server_url": srv.URL}}
	type answered struct {
		ID, Status string
		Output     []struct {
			ID, Type string
			Content  json.RawMessage
		}
	}
	ask := func() (r answered, ids []string) {
		t.Helper()
		s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "scripted", "input": "shop__order {\"What\":\"tea\"}\nshop__order {\"What\":\"milk\"}", "tools": tools}).Into(t, http.StatusOK, &r)
		for _, a := range inbox(t, s, key, "response_id="+r.ID) {
			if a.Tool != "order" || a.Server == nil || *a.Server != "shop" || a.Session != nil || a.Agent != nil || !strings.Contains(a.Arguments, "What") {
				t.Errorf("the inbox has %+v", a)
			}
			ids = append(ids, a.ID)
		}
		if len(ids) != 2 {
			t.Fatalf("the response %+v waits for %q", r, ids)
		}
		return r, ids
	}
	_, ids := ask()
	verdict(t, s, elsewhere, ids[0], map[string]any{"approve": false}, http.StatusConflict)
	if a := inbox(t, s, key, ""); len(a) != 2 {
		t.Errorf("a key of another environment has decided: %+v", a)
	}
	verdict(t, s, other, ids[0], map[string]any{"approve": true}, http.StatusNotFound)
	if a := verdict(t, s, key, ids[0], map[string]any{"approve": true}, http.StatusOK); a.Status != "approved" || a.Continued != nil || orders.Load() != 0 {
		t.Errorf("the first decision makes %+v", a)
	}
	verdict(t, s, key, ids[0], map[string]any{"approve": false}, http.StatusConflict)
	a := verdict(t, s, key, ids[1], map[string]any{"approve": false, "reason": "too dear"}, http.StatusOK)
	if a.Status != "denied" || a.Continued == nil {
		t.Fatalf("the last decision makes %+v", a)
	}
	var next answered
	atolltest.Until(t, time.Minute, "the response continues", func() bool {
		s.Must(t, key, http.MethodGet, "/v1/responses/"+*a.Continued, nil).Into(t, http.StatusOK, &next)
		return next.Status == "completed"
	})
	text, _ := json.Marshal(next)
	if orders.Load() != 1 || !strings.Contains(string(text), "too dear") || !strings.Contains(string(text), "on its way") {
		t.Errorf("%d orders, %s", orders.Load(), text)
	}
	verdict(t, s, key, ids[0], map[string]any{"approve": true}, http.StatusConflict)

	// The inbox reflects the client's own answer; the server rejects an answer that contradicts a decision.
	r, ids := ask()
	verdict(t, s, key, ids[0], map[string]any{"approve": false}, http.StatusOK)
	input := []any{}
	for _, it := range r.Output {
		if it.Type == "mcp_approval_request" {
			input = append(input, map[string]any{"type": "mcp_approval_response", "approval_request_id": it.ID, "approve": true})
		}
	}
	again := map[string]any{"model": "scripted", "previous_response_id": r.ID, "input": input, "tools": tools}
	if a := s.Must(t, key, http.MethodPost, "/v1/responses", again); a.Status != http.StatusConflict {
		t.Errorf("against a decision: %d %s", a.Status, a.Body)
	}
	r, ids = ask()
	input = input[:0]
	for _, it := range r.Output {
		if it.Type == "mcp_approval_request" {
			input = append(input, map[string]any{"type": "mcp_approval_response", "approval_request_id": it.ID, "approve": true})
		}
	}
	again["input"], again["previous_response_id"] = input, r.ID
	s.Must(t, key, http.MethodPost, "/v1/responses", again).Into(t, http.StatusOK, &next)
	if got := inbox(t, s, key, "status=approved&response_id="+r.ID); len(got) != 2 || got[0].Continued == nil || *got[0].Continued != next.ID {
		t.Errorf("the client approved %+v", got)
	}
	verdict(t, s, key, ids[0], map[string]any{"approve": true}, http.StatusConflict)
	s.Must(t, key, http.MethodDelete, "/v1/responses/"+r.ID, nil).Into(t, http.StatusOK, nil)
	if got := inbox(t, s, key, "status=all&response_id="+r.ID); len(got) != 0 {
		t.Errorf("a deleted response leaves %+v", got)
	}
}
