package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	agentservice "github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/feed"
	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/model/modeltest"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	approvalapi "github.com/atoll-run/atoll/internal/edge/httpapi/approval"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
	vaultapi "github.com/atoll-run/atoll/internal/edge/httpapi/vault"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// scripted has models that are called m.
type scripted struct{ modeltest.Script }

func (m scripted) Use(_ context.Context, _ tenant.ID, name string) (model.Model, *model.Record, error) {
	if name != "m" {
		return nil, nil, fault.New(fault.NotFound, "no model %q", name)
	}
	spec := model.Spec{Capabilities: model.Capabilities}
	return model.Guard(m.Script, spec, model.DefaultBounds), &model.Record{Name: name, Spec: spec}, nil
}

// answer calls the tools that a message names, side by side, and then says what it was told.
func answer(q model.Request) []model.Delta {
	used := model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}
	var said []string
	for _, it := range q.Items {
		switch {
		case it.Message != nil && it.Message.Role == model.User:
			said = []string{it.Message.Parts[0].Text}
		case it.Result != nil:
			said = append(said, it.Result.CallID+"="+it.Result.Parts[0].Text)
		}
	}
	if said[0] == "hang" {
		return []model.Delta{{Kind: model.Said, Text: "well"}, {}}
	}
	if names, ok := strings.CutPrefix(said[0], "call "); ok && len(said) == 1 {
		var out []model.Delta
		for i, name := range strings.Fields(names) {
			c := model.Call{ID: fmt.Sprint("c", i+1), Name: name, Arguments: "{}"}
			out = append(out, model.Delta{Kind: model.CallBegun, Index: i, Call: c}, model.Delta{Kind: model.CallArguments, Index: i, Text: "{}"}, model.Delta{Kind: model.CallEnded, Index: i, Call: c})
		}
		return append(out, used, model.Delta{Kind: model.Stopped, Stop: model.StopToolCalls})
	}
	return []model.Delta{{Kind: model.Said, Text: strings.Join(said, " | ")}, used, {Kind: model.Stopped, Stop: model.StopEnd}}
}

// hands are the handler of all tools of this server. A check of an outcome may say that it fails
// once, or hangs.
type hands struct{ hung func() }

func (hands) Show(*loop.Call) (*run.Item, error) { return nil, nil }
func (h hands) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	if strings.Contains(c.Call.Arguments, "hang") {
		h.hung()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	failed := strings.Contains(c.Call.Arguments, "fail once") && c.Number == -1
	var notes map[run.EventKind]run.Note
	if c.Call.Name == "share_file" {
		notes = map[run.EventKind]run.Note{run.EventFile: {Data: json.RawMessage(fmt.Sprintf(`{"file_id":"%s-%d","file_name":"made"}`, c.Run.ID, c.Number))}}
	}
	return &loop.Outcome{Notes: notes, Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: "did " + c.Call.Name}}}}, nil
}

// shown shows the models of scripted.
type shown struct{}

func (shown) Show(_ context.Context, _ tenant.ID, name string) (model.Record, error) {
	return model.Record{Name: name, Spec: model.Spec{Capabilities: model.Capabilities}}, nil
}

// freed are the names of sandboxes that were ended.
type freed struct {
	*gatewaytest.World
	mu    sync.Mutex
	names []string // guarded by mu
}

func (f *freed) letGo(_ context.Context, r *run.Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = append(f.names, r.Sandbox)
}

// EndTurn implements response.Files.
func (f *freed) EndTurn(ctx context.Context, _ *tenant.Principal, _, turn string) error {
	f.letGo(ctx, &run.Run{Sandbox: turn})
	return nil
}

// take are the names since it was called before.
func (f *freed) take() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, f.names = f.names, nil
	return names
}

type talk struct {
	*httpapitest.Server
	*testing.T
	path     string
	ended    chan run.ID   // turns
	hung     chan struct{} // a model or a tool was asked that does not answer
	recalled *atomic.Int64 // how often a conversation was read
	service  *conversation.Service
	skills   skill.Store
	agents   agent.Store
	db       *store.DB
	freed    *freed
}

// open begins a session with an agent that has a tool of the client's and those of the
// sandbox.
func open(t *testing.T, policy string) *talk {
	t.Helper()
	return openWith(t, policy, answer)
}

// openWith is open with another model, and with skills.
func openWith(t *testing.T, policy string, script modeltest.Script, skills ...agent.Skill) *talk {
	t.Helper()
	return openOn(t, policy, script, func(*httpapitest.Setup) {}, skills...)
}

// openOn is openWith on a server that change has changed.
func openOn(t *testing.T, policy string, script modeltest.Script, change func(*httpapitest.Setup), skills ...agent.Skill) *talk {
	t.Helper()
	return begin(t, policy, script, func(s session.Store) session.Store { return s }, change, skills...)
}

// openStored is open with a store that wrap returns.
func openStored(t *testing.T, wrap func(session.Store) session.Store) *talk {
	t.Helper()
	return begin(t, "{}", answer, wrap, func(*httpapitest.Setup) {})
}

func begin(t *testing.T, policy string, script modeltest.Script, wrap func(session.Store) session.Store, change func(*httpapitest.Setup), skills ...agent.Skill) *talk {
	t.Helper()
	hung := make(chan struct{}, 20)
	models := scripted{func(q model.Request) []model.Delta {
		out := script(q)
		if slices.ContainsFunc(out, func(d model.Delta) bool { return d.Kind == 0 }) {
			hung <- struct{}{}
		}
		return out
	}}
	var agents agent.Store
	var service *conversation.Service
	var keep skill.Store
	var records *store.DB
	free := &freed{}
	ended, recalled := make(chan run.ID, 20), new(atomic.Int64)
	hooks, err := webhook.New(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := httpapitest.New(t, func(s *httpapitest.Setup) {
		db, box := s.World.DB, storetest.Box(t)
		db.OnChange(s.World.Bus.News().Changed)
		used := &skilltool.Skills{Folders: db.Skills(), Events: db.Sessions()}
		keep, records, free.World = db.Skills(), db, s.World
		remote := remotes(t, db, box)
		wake := func() {}
		given := &handoff.Handoffs{Store: db.Runs(), Threads: db.Sessions(), LetGo: free.letGo}
		l := loop.New(loop.Config{
			Ended: func(r *run.Run) { wake(); ended <- r.ID },
			Store: db.Runs(), Models: models, Events: s.World.Bus.RunEvents(box), News: s.World.Bus.News(), Log: slog.New(slog.DiscardHandler), Holder: "here",
			Handlers: map[string]loop.Handler{"sandbox": hands{func() { hung <- struct{}{} }}, skilltool.Handler: used, mcptool.Handler: remote, handoff.Handler: given}, Check: used.Check, Grade: grader.Outcome, Conversation: func(ctx context.Context, t *run.Turn) ([]model.Item, error) {
				recalled.Add(1)
				return db.Sessions().Conversation(ctx, t)
			},
		})
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Stop)
		agents = db.Agents()
		authority := tenant.NewAuthority(db.Tenants())
		service = conversation.New(conversation.Config{
			Store: wrap(db.Sessions()), Agents: agents, Skills: db.Skills(), Vaults: db.Vaults(), Runs: l, Records: db.Runs(), Gate: &admission.Gate{Models: models}, MCP: remote, Web: web.New(web.Config{}),
			EndTurn: free.EndTurn, Enter: authority.Enter, Entrant: authority.Entrant, CheckWebhook: hooks.CheckURL, Told: func() {}, Keep: time.Hour, Log: slog.New(slog.DiscardHandler),
		})
		go service.Run(t.Context())
		wake = service.Wake
		given.Runs, given.Planner = l, service
		streams := &sessionstream.Streams{Feeds: &feed.Feeds{Service: service, News: s.World.Bus.News()}}
		api := &sessionapi.Handlers{Service: service, Streams: streams, Outputs: free}
		s.Sessions = api
		s.Approvals = &approvalapi.Handlers{Service: approval.New(approval.Config{Store: db.Approvals(), Conversations: service}), Within: authority.Within, Cover: func(_ *tenant.Principal, text string) (string, error) { return text, nil }}
		s.Agents = &agentapi.Handlers{Service: &agentservice.Service{Store: agents, Models: shown{}}}
		s.Vaults = &vaultapi.Handlers{Service: &vaults.Service{Store: db.Vaults(), Max: 5, CheckURL: local(t).CheckURL}}
		s.CompatPath = anthropic.Path
		s.Managed = &anthropic.Handlers{Agents: s.Agents.Service, Streams: streams, Conversations: service, Vaults: s.Vaults.Service, Keys: s.World}
		change(s)
	})
	a := &agent.Agent{ID: agent.NewID(), Tenant: s.Caller.Tenant.ID, Slug: "helper", Visibility: agent.Private, Definition: agent.Definition{
		Name: "Helper", Model: agent.Model{Name: "m"}, Tools: []agent.Tool{{Type: agent.Sandbox}, {Type: agent.Custom, Name: "theirs"}}, Skills: skills,
	}}
	if err := json.Unmarshal([]byte(policy), &a.Definition.Policy); err != nil {
		t.Fatal(err)
	}
	if err := agents.Create(t.Context(), a, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	k := &talk{s, t, "", ended, hung, recalled, service, keep, agents, records, free}
	var made struct{ ID string }
	k.ask(http.StatusCreated, "POST", "/v1/sessions", `{"agent_id":"helper"}`, &made)
	k.path = "/v1/sessions/" + made.ID
	return k
}

func (k *talk) ask(status int, method, path, body string, into any) {
	k.Helper()
	w := httpapitest.Ask(k.Server, method, path, body, "Content-Type", "application/json")
	if w.Code != status {
		k.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, status)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			k.Fatal(err)
		}
	}
}

func (k *talk) post(status int, body string) (out sessionapi.SessionTurn) {
	k.Helper()
	if status != http.StatusOK {
		k.ask(status, "POST", k.path+"/events", body, nil)
		return out
	}
	k.ask(status, "POST", k.path+"/events", body, &out)
	return out
}

func (k *talk) say(text string) sessionapi.SessionTurn {
	k.Helper()
	return k.post(200, fmt.Sprintf(`{"type":"message","content":%q}`, text))
}

func (k *talk) types() (out []string) {
	k.Helper()
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+"/events", "", &page)
	for _, e := range page.Data {
		out = append(out, string(e.Type))
	}
	return out
}

// TestSideBySide has calls of one answer wait for answers of several kinds.
func TestSideBySide(t *testing.T) {
	k := open(t, `{"Confirm":["write_file","sandbox"],"Deny":["read_file"]}`)
	turn := k.say("call run_code theirs write_file read_file")
	if turn.Status != "requires_action" || len(turn.RequiresAction) != 3 {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	code, theirs, file := turn.RequiresAction[0], turn.RequiresAction[1], turn.RequiresAction[2]
	if code.Needs != "tool_confirmation" || theirs.Needs != "tool_result" || file.Name != "write_file" || *file.Arguments != "{}" {
		t.Errorf("%+v", turn.RequiresAction)
	}
	k.post(409, `{"type":"message","content":"continue"}`)
	if turn = k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, code.ToolUseID)); turn.ID != nil || len(turn.RequiresAction) != 2 {
		t.Errorf("%+v", turn)
	}
	k.post(409, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":false}`, code.ToolUseID))
	k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":false,"reason":"no files"}`, file.ToolUseID))
	turn = k.post(200, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"mine"}`, theirs.ToolUseID))
	const want = "call run_code theirs write_file read_file"
	if turn.Status != "completed" || !strings.HasPrefix(turn.Content, want) {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	for _, part := range []string{"c1=did run_code", "c2=mine", "c3=The user did not allow this call, so it was not made. The user's reason: no files", `c4=there is no tool "read_file"`} {
		if !strings.Contains(turn.Content, part) {
			t.Errorf("%q lacks %q", turn.Content, part)
		}
	}
	if turn = k.say("and?"); turn.Content != "and?" {
		t.Errorf("%+v", turn)
	}
}

// TestConversationIsReadOnce: it may be long, and what a turn did is told without it.
func TestConversationIsReadOnce(t *testing.T) {
	k := open(t, `{}`)
	for range 3 {
		if turn := k.say("hello"); turn.Content != "hello" {
			t.Errorf("%+v", turn)
		}
	}
	if n := k.recalled.Load(); n != 2 { // before the first turn there is none
		t.Errorf("3 turns read it %d times", n)
	}
}

// TestGivenUp interrupts a session whose calls wait, one of which was approved.
func TestGivenUp(t *testing.T) {
	k := open(t, `{"Confirm":["sandbox"]}`)
	turn := k.say("call run_code write_file")
	k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[0].ToolUseID))
	var s sessionapi.Session
	k.ask(200, "POST", k.path+"/interrupt", "", &s)
	if s.Status != "idle" {
		t.Errorf("%+v", s)
	}
	k.post(409, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[1].ToolUseID))
	if turn = k.say("hello"); turn.Content != "hello" {
		t.Errorf("%+v", turn)
	}
}

func TestEvents(t *testing.T) {
	k := open(t, `{}`)
	k.say("call run_code")
	want := "message status tool_use tool_result message usage status"
	if got := strings.Join(k.types(), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w := httpapitest.Ask(k.Server, "POST", k.path+"/events?deltas=true", `{"type":"message","content":"one"}`, "Accept", "text/event-stream")
	var got []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			got = append(got, kind)
		}
	}
	if strings.Join(got, " ") != "message status delta message usage status" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"hang"}`, "Prefer", "respond-async")
	if w.Code != 202 || w.Header().Get("Preference-Applied") != "respond-async" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	k.post(409, `{"type":"message","content":"more"}`)
	k.ask(202, "POST", k.path+"/events", `{"type":"message","content":"queued","queue":true}`, nil)
	k.ask(409, "POST", k.path+"/archive", "", nil)
	k.ask(409, "DELETE", k.path, "", nil)
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	for range 4 { // turns: two before, the one that hung, and the one after it
		<-k.ended
	}
	var s sessionapi.Session
	if k.ask(200, "GET", k.path, "", &s); s.Status != "idle" || s.QueuedTurns != 0 || s.Events <= 20 {
		t.Fatalf("%+v", s)
	}
	types := k.types()
	// What was said of the answer is among them if it was sent by then.
	cut := strings.TrimSuffix(strings.Join(types[12:], " "), " message status message usage status")
	if cut != "message status message usage status" && cut != "message status usage status" {
		t.Errorf("an interrupted turn has %s", cut)
	}
	k.ask(200, "POST", k.path+"/archive", "", nil)
	last := httpapitest.Ask(k.Server, "GET", k.path+"/events/stream", "")
	if n := strings.Count(last.Body.String(), "\nevent: "); n != len(types) {
		t.Errorf("%d events of %d: %s", n, len(types), last.Body)
	}
	k.ask(204, "DELETE", k.path, "", nil)
	k.ask(404, "GET", k.path+"/events", "", nil)
}

func TestBadEvents(t *testing.T) {
	k := open(t, `{}`)
	for body, want := range map[string]string{
		`{"type":"message"}`:                                                         "content is required",
		`{"type":"message","content":" "}`:                                           "content must be a text of 1 to",
		`{"type":"message","content":"x","approve":true}`:                            "approve has no meaning",
		`{"type":"tool_confirmation","tool_use_id":"x"}`:                             "approve is required",
		`{"type":"tool_confirmation","approve":true}`:                                "tool_use_id is required",
		`{"type":"tool_confirmation","tool_use_id":"x","approve":true,"reason":"y"}`: "reason requires approve false",
		`{"type":"interrupt"}`:                                                       "type must be one of",
		`{"type":"message","role":"assistant","content":"x"}`:                        "role must be",
	} {
		httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", body), 400, "validation_error", want)
	}
	k.post(404, `{"type":"tool_confirmation","tool_use_id":"sevt_1","approve":true}`)
	k.ask(404, "POST", "/v1/sessions", `{"agent_id":"nothing"}`, nil)
	k.ask(400, "GET", k.path+"/events?types=all", "", nil)
	k.ask(400, "GET", k.path+"/events/stream?after=sevt_1", "", nil)
}

// TestApprovalsReadEnvironmentOnce checks that a list of approvals reads each environment once.
func TestApprovalsReadEnvironmentOnce(t *testing.T) {
	var reads atomic.Int64
	k := openOn(t, `{"Confirm":["sandbox"]}`, answer, func(s *httpapitest.Setup) {
		within := s.Approvals.Within
		s.Approvals.Within = func(ctx context.Context, p tenant.Principal, environment string) (tenant.Principal, error) {
			reads.Add(1)
			return within(ctx, p, environment)
		}
	})
	k.say("call run_code write_file read_file")
	var page struct{ Data []struct{ ID string } }
	k.ask(200, "GET", "/v1/approvals", "", &page)
	if len(page.Data) != 3 || reads.Load() != 1 {
		t.Errorf("%d approvals, %d reads of their environment", len(page.Data), reads.Load())
	}
}

// TestDecidedAtOnce: decisions over the calls of one answer that come at the same moment all count.
func TestDecidedAtOnce(t *testing.T) {
	k := open(t, `{"Confirm":["sandbox"]}`)
	for range 10 {
		turn := k.say("call run_code write_file read_file")
		if len(turn.RequiresAction) != 3 {
			t.Fatalf("%+v", turn)
		}
		var page struct{ Data []struct{ ID string } }
		k.ask(200, "GET", "/v1/approvals?session_id="+turn.SessionID, "", &page)
		codes := make(chan int, len(page.Data))
		for _, a := range page.Data {
			go func() {
				codes <- httpapitest.Ask(k.Server, "POST", "/v1/approvals/"+a.ID, `{"approve":true}`, "Content-Type", "application/json").Code
			}()
		}
		for range page.Data {
			if code := <-codes; code != http.StatusOK {
				t.Fatalf("a decision: %d", code)
			}
		}
		<-k.ended // the turn that asked
		<-k.ended // the one that made the calls
		if s := k.session(); s.Status != "idle" {
			t.Fatalf("%+v", s)
		}
	}
}
