package session_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// other is the session of a talk in the other form, package managed's.
func (k *talk) other(want int, method, path, body string, into any) string {
	k.Helper()
	w := httpapitest.Ask(k.Server.Server, method, "/anthropic"+k.path+path, body, "Content-Type", "application/json")
	if w.Code != want {
		k.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, want)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			k.Fatal(err)
		}
	}
	return w.Body.String()
}

func (k *talk) list(query string) (all []anthropic.Event) {
	k.Helper()
	var page struct{ Data []anthropic.Event }
	k.other(200, "GET", "/events"+query, "", &page)
	return page.Data
}

func (k *talk) put(want int, events ...string) (all []anthropic.Event) {
	k.Helper()
	var sent anthropic.Sent
	k.other(want, "POST", "/events", `{"events":[`+strings.Join(events, ",")+`]}`, &sent)
	return sent.Data
}

func kindsOf(all []anthropic.Event) string {
	var out []string
	for _, e := range all {
		out = append(out, e.Type[strings.IndexByte(e.Type, '.')+1:])
	}
	return strings.Join(out, " ")
}

func words(text string) string {
	return fmt.Sprintf(`{"type":"user.message","content":[{"type":"text","text":%q}]}`, text)
}

// TestBothForms: what one form did, the other one shows, and says what it cannot.
func TestBothForms(t *testing.T) {
	k := open(t, `{"Confirm":["sandbox"]}`)
	var made struct{ ID string }
	k.ask(201, "POST", "/v1/sessions", `{"agent_id":"helper","title":"Both","metadata":{"user":"a","order":{"id":5}}}`, &made)
	k.path = "/v1/sessions/" + made.ID
	var s anthropic.Session
	k.other(200, "POST", "", `{"metadata":{"user":null,"team":"b"}}`, &s)
	if *s.Title != "Both" || len(s.Metadata) != 1 || s.Metadata["team"] != "b" || len(s.Warnings) != 1 || s.Warnings[0].Path != "metadata.order" {
		t.Errorf("%+v", s)
	}
	turn := k.say("call run_code theirs gone")
	use := k.list("?types[]=agent.tool_use&types[]=agent.custom_tool_use")
	if len(use) != 3 || use[0].EvaluatedPermission != "ask" || use[1].Type != "agent.custom_tool_use" || use[2].EvaluatedPermission != "deny" || use[0].ID != turn.RequiresAction[0].ToolUseID {
		t.Fatalf("%+v", use)
	}
	result := fmt.Sprintf(`{"type":"user.custom_tool_result","custom_tool_use_id":%q,"content":[{"type":"text","text":"mine"}]}`, use[1].ID)
	confirmed := fmt.Sprintf(`{"type":"user.tool_confirmation","tool_use_id":%q,"result":"allow"}`, use[0].ID)
	k.put(409, words("no"))
	k.put(409, result, words("no")) // the other call waits
	k.put(409, result, result)
	k.put(409, fmt.Sprintf(`{"type":"user.tool_confirmation","tool_use_id":%q,"result":"allow"}`, use[1].ID))
	if sent := k.put(200, result); len(sent) != 1 || sent[0].CustomToolUseID != use[1].ID || sent[0].ID != k.list("?order=desc&limit=1")[0].ID {
		t.Errorf("%+v", sent)
	}
	k.put(409, result)
	sent := k.put(200, confirmed, words("and"), words("this"), `{"type":"system.message","content":[{"type":"text","text":"Be brief."}]}`)
	<-k.ended
	<-k.ended
	all := k.list("")
	at := 0
	for i, e := range all {
		if e.ID == sent[0].ID {
			at = i
		}
	}
	want := "tool_confirmation message message message status_running tool_result model_request_start message model_request_end usage status_idle"
	if got := kindsOf(all[at:]); got != want || all[at+1].ID != sent[1].ID || all[at+2].ID != sent[2].ID || all[at+3].ID != sent[3].ID || all[at+3].Type != "system.message" || all[at+5].ToolUseID != use[0].ID {
		t.Errorf("%s", got)
	}
}

// settled is a store whose sessions are read once their turns have ended.
type settled struct {
	session.Store
	t *testing.T
}

func (o settled) Get(ctx context.Context, t tenant.ID, id session.ID) (s *session.Session, err error) {
	atolltest.Until(o.t, 30*time.Second, "its turn has ended", func() bool {
		s, err = o.Store.Get(ctx, t, id)
		return err != nil || s.Run == ""
	})
	return s, err
}

// TestInitialEvents: a session that begins with a message runs for the client that made it,
// though its turn may have ended before the answer is written.
func TestInitialEvents(t *testing.T) {
	k := openStored(t, func(s session.Store) session.Store { return settled{s, t} })
	var s anthropic.Session
	k.other(200, "GET", "", "", &s)
	k.ask(200, "POST", "/anthropic/v1/sessions", `{"agent":"`+s.Agent.ID+`","environment_id":"`+s.EnvironmentID+`","initial_events":[`+words("hello")+`]}`, &s)
	if s.Status != "running" {
		t.Errorf("a session that began with a message is %s", s.Status)
	}
	k.ask(200, "GET", "/anthropic/v1/sessions/"+s.ID, "", &s)
	if s.Status != "idle" {
		t.Errorf("after its turn it is %s", s.Status)
	}
}

// leaving is a store whose client disconnects before the first turn of a session starts.
type leaving struct {
	session.Store
	leave func()
}

func (l leaving) Window(ctx context.Context, id session.ID, until int64) (int64, error) {
	l.leave()
	return l.Store.Window(ctx, id, until)
}

// TestLeftAtStart checks that no session remains if its client disconnects before the first turn.
func TestLeftAtStart(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	k := openStored(t, func(s session.Store) session.Store { return leaving{s, leave} })
	in := &conversation.NewSession{Agent: k.session().AgentID}
	if s, err := k.service.Start(ctx, &admission.Caller{Principal: k.Caller}, in, &conversation.Batch{Messages: []model.Item{model.Text(model.User, "x")}}); err == nil {
		t.Errorf("started %+v", s)
	}
	all, _, err := k.service.Store.List(t.Context(), k.Caller.Tenant.ID, session.Filter{Page: agent.Page{Limit: 10}})
	if err != nil || len(all) != 1 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
}

// TestBudgetReached: a turn that a session's budget ends says so.
func TestBudgetReached(t *testing.T) {
	k := open(t, `{}`)
	var made struct{ ID string }
	k.ask(201, "POST", "/v1/sessions", `{"agent_id":"helper","budget":{"tokens":10}}`, &made)
	k.path = "/v1/sessions/" + made.ID
	k.put(200, words("call run_code"))
	<-k.ended
	all := k.list("?types=session.error&types=session.status_idle")
	if len(all) != 2 || all[0].Error.Type != "billing_error" || all[1].StopReason.Type != "budget_reached" {
		t.Errorf("%+v", all)
	}
	k.put(429, words("more"))
	var s anthropic.Session
	if k.other(200, "GET", "", "", &s); s.Budget != nil || len(s.Warnings) != 1 || s.Warnings[0].Path != "budget.tokens" {
		t.Errorf("%+v", s)
	}
}

// TestMessages are of several parts, which come back as they were.
func TestMessages(t *testing.T) {
	k := open(t, `{}`)
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nnot much of one"))
	message := `{"type":"user.message","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}},
		{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"document","title":"Bill","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]}`
	sent := k.put(200, message)
	<-k.ended
	kept := k.list("?types=user.message")
	a, _ := json.Marshal(sent[0].Content)
	b, _ := json.Marshal(kept[0].Content)
	if len(kept) != 1 || len(kept[0].Content) != 4 || string(a) != string(b) || string(kept[0].Content[1].Source.Data) != "\x89PNG\r\n\x1a\nnot much of one" || kept[0].Content[3].Title != "Bill" {
		t.Errorf("%s, sent were %s", b, a)
	}
	for block, says := range map[string]string{
		`{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}`: "at most",
		`{"type":"text"}`: "must have text",
		`{"type":"image","source":{"type":"file","file_id":"f"}}`:                                         "this server has no files",
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}`:                 "base64",
		`{"type":"image","source":{"type":"base64","media_type":"image/png;x","data":"aa"}}`:              "media_type",
		`{"type":"image","source":{"type":"url","url":"data:image/png;base64,AAAA"}}`:                     "url",
		`{"type":"image","source":{"type":"url","url":"ftp://example.com/"}}`:                             "https",
		`{"type":"document","context":"x","source":{"type":"text","media_type":"text/plain","data":"x"}}`: "context",
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`:               "source.type",
		`{"type":"redacted"}`: "must be text, image or document",
	} {
		if got := k.other(400, "POST", "/events", `{"events":[`+words("fine")+`,{"type":"user.message","content":[`+block+`]}]}`, nil); !strings.Contains(got, says) {
			t.Errorf("%.80s: %s", block, got)
		}
	}
	if n := len(k.list("?types=user.message")); n != 1 {
		t.Errorf("%d messages were taken", n)
	}
	long := words(strings.Repeat("x", 900<<10))
	k.put(200, long, long, long, long, long)
	<-k.ended
	for range 14 {
		k.put(200, words("short"))
		<-k.ended
	}
	for query, want := range map[string]int{"?limit=1000": 100, "?limit=1000&types=agent.message": 16, "?limit=3": 3} {
		if n := len(k.list(query)); n != want {
			t.Errorf("a page %s has %d events, want %d", query, n, want)
		}
	}
}

// TestBadBatches are refused whole.
func TestBadBatches(t *testing.T) {
	k := open(t, `{}`)
	const interrupt = `{"type":"user.interrupt"}`
	const system = `{"type":"system.message","content":[{"type":"text","text":"y"}]}`
	result := `{"type":"user.custom_tool_result","custom_tool_use_id":"x","content":[{"type":"text","text":"y"}]}`
	for batch, says := range map[string]string{
		``: "1 to 50", strings.Repeat(interrupt+",", 50) + interrupt: "1 to 50",
		words("x") + "," + interrupt: "has no place", interrupt + "," + result: "has no place", words("x") + "," + result: "has no place", interrupt + "," + interrupt: "has no place",
		system: "has no place", words("x") + "," + system + "," + words("y"): "has no place", interrupt + "," + system: "has no place",
		words("x") + `,{"type":"system.message","content":[{"type":"image"}]}`: "must be text", words("x") + `,{"type":"system.message"}`: "1 to 50 blocks",
		words(" "): "must say something", `{"type":"user.message","content":[]}`: "1 to 50 blocks", `{"type":"user.message"}`: "1 to 50 blocks",
		`{"type":"user.define_outcome"}`: "description is required", `{"type":"agent.message"}`: "must be one of", `{}`: "type", `5`: "events[0]",
		`{"type":"user.interrupt","content":[{"type":"text","text":"y"}]}`:                            "no meaning",
		`{"type":"user.tool_confirmation","tool_use_id":"x"}`:                                         "result is required",
		`{"type":"user.tool_confirmation","tool_use_id":"x","result":"maybe"}`:                        "result must be",
		`{"type":"user.tool_confirmation","tool_use_id":"x","result":"allow","deny_message":"y"}`:     "deny only",
		`{"type":"user.custom_tool_result","tool_use_id":"x"}`:                                        "no meaning",
		`{"type":"user.custom_tool_result","custom_tool_use_id":"x","content":[{"type":"image"}]}`:    "must be text",
		`{"type":"user.message","session_thread_id":"sthr_1","content":[{"type":"text","text":"y"}]}`: "session_thread_id",
	} {
		if got := k.other(400, "POST", "/events", `{"events":[`+batch+`]}`, nil); !strings.Contains(got, says) || !strings.Contains(got, `"invalid_request_error"`) {
			t.Errorf("%.80s: %s", batch, got)
		}
	}
	k.put(404, result)
	for _, query := range []string{"?types=no", "?order=up", "?created_at[gt]=yesterday", "?limit=1001", "/stream?cursor=sevt_1", "/stream?cursor=sevt_" + strings.Repeat("0", 32) + "_m1", "/stream?event_deltas[]=agent.tool_use"} {
		k.other(400, "GET", "/events"+query, "", nil)
	}
	if got := k.list(""); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestForeignSessions: to another tenant a session is as one that never was, and a key that may
// read changes nothing.
func TestForeignSessions(t *testing.T) {
	k := open(t, `{}`)
	k.World.Principal(t, "other", "pro")
	k.World.Principal(t, "narrow", "pro", func(p *tenant.Principal) { p.Key.Scopes = []tenant.Scope{tenant.ScopeRead} })
	trace := regexp.MustCompile(`trc_[0-9a-z]+`)
	ask := func(of, method, path, body string) (int, string) {
		w := httpapitest.Ask(k.Server.Server, method, "/anthropic"+path, body, "Content-Type", "application/json", "Authorization", "Bearer "+gatewaytest.Token(of))
		return w.Code, trace.ReplaceAllString(w.Body.String(), "")
	}
	none := "/v1/sessions/sess_" + strings.Repeat("0", 32)
	for _, op := range [][3]string{
		{"GET", "", ""}, {"POST", "", `{"title":"x"}`}, {"DELETE", "", ""}, {"POST", "/archive", ""}, {"GET", "/events", ""}, {"GET", "/events/stream", ""}, {"POST", "/events", `{"events":[` + words("x") + `]}`},
	} {
		code, foreign := ask("other", op[0], k.path+op[1], op[2])
		if _, never := ask("other", op[0], none+op[1], op[2]); code != 404 || foreign != never {
			t.Errorf("%s %s: %d %s, and of one that never was: %s", op[0], op[1], code, foreign, never)
		}
		want := 404
		if op[0] != "GET" {
			want = 403
		}
		if code, text := ask("narrow", op[0], none+op[1], op[2]); code != want {
			t.Errorf("a key that may read: %s %s: %d %s", op[0], op[1], code, text)
		}
	}
	if code, text := ask("other", "POST", "/v1/sessions", `{"agent":"helper"}`); code != 404 {
		t.Errorf("with an agent of another tenant: %d %s", code, text)
	}
}
