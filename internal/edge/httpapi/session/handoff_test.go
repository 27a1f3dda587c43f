package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// obey is a model whose instructions are its name. It does what the last message of the user
// says: "do A x; B y then C z" calls A and B side by side, and when it has their results, C. Other
// texts, and what came of the last calls, it says. In what it hands on, "%" stands for "then", and "@"
// for "%". Asked for a summary it gives one.
func obey(q model.Request) []model.Delta {
	used := model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}
	say := func(text string) []model.Delta {
		return []model.Delta{{Kind: model.Said, Text: text}, used, {Kind: model.Stopped, Stop: model.StopEnd}}
	}
	if strings.Contains(q.Instructions, "Write a summary") {
		return say("in short")
	}
	name, _, _ := strings.Cut(q.Instructions, "\n")
	order, step := "", 0
	var said []string
	for _, it := range q.Items {
		switch {
		case it.Message != nil && it.Message.Role == model.User:
			order, said, step = it.Message.Parts[0].Text, nil, 0
		case it.Call != nil:
			if n := int(it.Call.ID[1] - '0'); n > step {
				step, said = n, nil
			}
		case it.Result != nil:
			said = append(said, it.Result.Parts[0].Text)
		}
	}
	if order == "hang" {
		return []model.Delta{{Kind: model.Said, Text: "well"}, {}}
	}
	steps := strings.Split(strings.TrimPrefix(order, "do "), " then ")
	if !strings.HasPrefix(order, "do ") || step == len(steps) {
		if len(said) == 0 {
			said = []string{order}
		}
		return say(name + ": " + strings.Join(said, " | "))
	}
	var out []model.Delta
	for i, one := range strings.Split(steps[step], "; ") {
		tool, arg, _ := strings.Cut(one, " ")
		arguments := "{}"
		for _, t := range q.Tools {
			if t.Name == tool && strings.HasPrefix(tool, "handoff_to_") {
				key := "reason"
				if strings.Contains(string(t.Parameters), `"task"`) {
					key = "task"
				}
				text, _ := json.Marshal(map[string]string{key: strings.NewReplacer("(", "do ", ")", "", "+", "; ", "@", "%", "%", " then ").Replace(arg)})
				arguments = string(text)
			}
		}
		c := model.Call{ID: fmt.Sprintf("c%d_%d", step+1, i), Name: tool, Arguments: arguments}
		out = append(out, model.Delta{Kind: model.CallBegun, Index: i, Call: c}, model.Delta{Kind: model.CallArguments, Index: i, Text: arguments}, model.Delta{Kind: model.CallEnded, Index: i, Call: c})
	}
	return append(out, used, model.Delta{Kind: model.Stopped, Stop: model.StopToolCalls})
}

// agent makes an agent, with more of its fields.
func (k *talk) agent(name, more string) {
	k.Helper()
	k.ask(201, "POST", "/v1/agents", fmt.Sprintf(`{"name":%q,"slug":%q,"system":%q,"model":{"name":"m"}%s}`, name, strings.ToLower(name), name, more), nil)
}

// with begins a session with an agent.
func (k *talk) with(agent string) {
	k.Helper()
	var made struct{ ID string }
	k.ask(201, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":%q}`, agent), &made)
	k.path = "/v1/sessions/" + made.ID
}

func (k *talk) session() (s sessionapi.Session) {
	k.Helper()
	k.ask(200, "GET", k.path, "", &s)
	return s
}

// threads are those of the session, the oldest first.
func (k *talk) threads() []sessionapi.SessionThread {
	k.Helper()
	var page struct{ Data []sessionapi.SessionThread }
	k.ask(200, "GET", k.path+"/threads", "", &page)
	slices.Reverse(page.Data)
	return page.Data
}

func (k *talk) events(of string) []sessionapi.SessionEvent {
	k.Helper()
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+of+"/events", "", &page)
	return page.Data
}

func kinds(all []sessionapi.SessionEvent) string {
	var out []string
	for _, e := range all {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

const both = `,"handoffs":[{"agent_id":"a","name":"A","description":"Adds.","trigger":"when there is a sum"},{"agent_id":"b"}]`

// lead opens a session with an agent that hands work to A, which has the sandbox's tools, and B.
func lead(t *testing.T, more string) *talk {
	k := openWith(t, `{}`, obey)
	k.agent("A", `,"tools":[{"type":"sandbox"},{"type":"custom","name":"theirs"}],"tool_policy":{"require_confirmation":["write_file"]}`)
	k.agent("B", `,"tools":[{"type":"sandbox"}]`)
	k.agent("Lead", both+more)
	k.with("lead")
	return k
}

func TestOrchestrator(t *testing.T) {
	k := lead(t, `,"multiagent":{"parallel":true}`)
	turn := k.say("do handoff_to_a (run_code); handoff_to_b hello")
	if turn.Content != "Lead: A: did run_code | B: hello" || turn.Status != "completed" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	// Lead 2 answers, a summary for each, A 2, B 1.
	if turn.Usage.InputTokens != 70 || turn.Usage.OutputTokens != 35 {
		t.Errorf("usage of the turn %+v", turn.Usage)
	}
	if s := k.session(); s.Usage.InputTokens != 70 || s.Speaker.AgentID != s.AgentID {
		t.Errorf("%+v", s)
	}
	all := k.events("")
	got := kinds(all)
	if !strings.HasPrefix(got, "message status tool_use tool_use thread_created thread_message_sent ") || !strings.HasSuffix(got, " message usage status") ||
		strings.Count(got, "thread_message_received thread_idle tool_result") != 2 || strings.Count(got, "message ") != 2 {
		t.Error(got)
	}
	threads := k.threads()
	slices.SortFunc(threads, func(a, b sessionapi.SessionThread) int { return strings.Compare(a.Name, b.Name) }) // they begin side by side
	if len(threads) != 2 || threads[0].Status != "idle" || threads[0].Name != "A" || threads[1].Usage.InputTokens != 20 || threads[0].EndedAt == nil {
		t.Fatalf("%+v", threads)
	}
	if at := slices.IndexFunc(all, func(e sessionapi.SessionEvent) bool {
		return e.Type == "thread_message_sent" && *e.Thread.ThreadID == threads[0].ID
	}); at < 0 || *all[at].Content != "do run_code" || *all[at].ToolUseID != all[2].ID || all[at].Thread.Name != "A" {
		t.Errorf("%+v", all)
	}
	own := k.events("/threads/" + threads[0].ID)
	if got := kinds(own); got != "context_summary message status tool_use tool_result message usage status" {
		t.Error(got)
	}
	if *own[0].Content != "in short" || *own[1].Content != "do run_code" || *own[5].Content != "A: did run_code" || !strings.HasPrefix(own[0].ID, "sevt_"+strings.TrimPrefix(threads[0].ID, "sthr_")) {
		t.Errorf("%+v", own)
	}
	k.ask(404, "GET", k.path+"/threads/sthr_00000000000000000000000000000000", "", nil)
	k.ask(404, "GET", k.path+"/threads/x/events", "", nil)
	k.ask(404, "GET", "/v1/sessions/sess_00000000000000000000000000000000/threads", "", nil)
	var page struct {
		Data     []sessionapi.SessionEvent
		NextPage *string `json:"next_page"`
	}
	k.ask(200, "GET", k.path+"/threads/"+threads[0].ID+"/events?limit=1&order=desc&types=message", "", &page)
	if len(page.Data) != 1 || page.NextPage == nil || *page.Data[0].Content != "A: did run_code" {
		t.Errorf("%+v", page)
	}
	// The next turn continues.
	if turn := k.say("thanks"); turn.Content != "Lead: thanks" {
		t.Errorf("%+v", turn)
	}
	var c sessionapi.SessionContext
	k.ask(200, "GET", k.path+"/context", "", &c)
	if !strings.Contains(c.Instructions, "- A, by handoff_to_a: Adds. Hand on to it when there is a sum") || len(c.Tools) != 2 || c.Tools[0].Name != "handoff_to_a" {
		t.Errorf("%+v", c)
	}
}

// TestRights: what one of those forbids that handed the work on, the one who does it may not.
func TestRights(t *testing.T) {
	k := lead(t, `,"tool_policy":{"deny_list":["read_file"],"require_confirmation":["run_code"]},"multiagent":{"context_sharing":"full"}`)
	turn := k.say("do handoff_to_a (read_file+run_code+write_file+theirs+glob)")
	var waits []string
	for _, w := range turn.RequiresAction {
		waits = append(waits, w.Name)
	}
	if turn.Status != "requires_action" || !slices.Equal(waits, []string{"run_code", "write_file", "theirs"}) {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	k.post(200, denies(turn.RequiresAction[0].ToolUseID))
	k.post(200, denies(turn.RequiresAction[1].ToolUseID))
	turn = k.post(200, gives(turn.RequiresAction[2].ToolUseID))
	for _, part := range []string{`there is no tool "read_file"`, "The user did not allow this call", "mine", "did glob"} {
		if !strings.Contains(turn.Content, part) {
			t.Errorf("%q lacks %q", turn.Content, part)
		}
	}
	if turn.Status != "completed" || strings.Contains(turn.Content, "did run_code") || strings.Contains(turn.Content, "did write_file") {
		t.Errorf("%+v", turn)
	}
	if got := kinds(k.events("/threads/" + k.threads()[0].ID)); !strings.HasPrefix(got, "message status tool_use") {
		t.Error(got)
	}
	// A list of what is allowed holds for others, too, and is not about hand-offs.
	k.agent("Strict", both+`,"tool_policy":{"allow_list":["glob"],"deny_list":["handoff_to_b"]}`)
	k.with("strict")
	if turn := k.say("do handoff_to_a (glob+grep); handoff_to_b x"); turn.Content != `Strict: A: did glob | there is no tool "grep" | there is no tool "handoff_to_b"` {
		t.Errorf("%+v", turn)
	}
	// A hand-off may wait for approval as other calls do.
	k.agent("Careful", both+`,"tool_policy":{"require_confirmation":["handoffs"]}`)
	k.with("careful")
	turn = k.say("do handoff_to_b x")
	if turn.Status != "requires_action" || len(k.threads()) != 0 {
		t.Fatalf("%+v", turn)
	}
	if turn = k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[0].ToolUseID)); turn.Content != "Careful: B: x" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
}

// TestDelegations bounds the hand-offs of a turn over the whole tree.
func TestDelegations(t *testing.T) {
	k := lead(t, "")
	k.agent("Top", `,"handoffs":[{"agent_id":"lead"},{"agent_id":"b"}],"multiagent":{"max_delegations":3,"parallel":true}`)
	k.with("top")
	turn := k.say("do handoff_to_lead (handoff_to_a x+handoff_to_b y) then handoff_to_b z")
	const most = "The work was not handed on: there were 3 hand-offs in this turn, which is the most"
	if turn.Content != "Top: "+most {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	threads := k.threads()
	if len(threads) != 3 || threads[1].Parent == nil || *threads[1].Parent != threads[0].ID || threads[1].TurnID != threads[0].TurnID {
		t.Errorf("%+v", threads)
	}
	// 3 answers of the top, one summary and 2 answers for Lead, summary and answer for each of A and B.
	if turn.Usage.InputTokens != 100 || threads[0].Usage.InputTokens != 70 {
		t.Errorf("%+v %+v", turn.Usage, threads[0].Usage)
	}
	if turn := k.say("do handoff_to_b again"); turn.Content != "Top: B: again" {
		t.Errorf("in another turn: %+v", turn)
	}
}

// TestHandoffTimeout: both agents hang, as the answer of one may take a busy machine longer.
func TestHandoffTimeout(t *testing.T) {
	k := lead(t, `,"multiagent":{"timeout_per_handoff_ms":300,"parallel":true}`)
	turn := k.say("do handoff_to_a hang; handoff_to_b hang")
	if turn.Status != "completed" {
		t.Errorf("%+v", turn)
	}
	threads := k.threads()
	if len(threads) != 2 {
		t.Fatalf("%+v", threads)
	}
	for _, one := range threads {
		if one.Status != "terminated" || !strings.Contains(turn.Content, one.Name+" was ended after 300ms, which is the most time that it has.") {
			t.Errorf("%+v of %+v", one, turn)
		}
		var page struct{ Data []anthropic.Event }
		k.other(200, "GET", "/threads/"+one.ID+"/events", "", &page)
		if last := page.Data[len(page.Data)-1]; last.Type != "session.thread_status_terminated" || last.Code != "max_duration" || last.StopReason != nil {
			t.Errorf("%+v", last)
		}
	}
	if got := kinds(k.events("")); strings.Count(got, "thread_terminated tool_result") != 2 {
		t.Error(got)
	}
}

// TestInterruptTree ends a turn with agents at work in two levels.
func TestInterruptTree(t *testing.T) {
	k := lead(t, "")
	k.agent("Top", `,"handoffs":[{"agent_id":"lead"},{"agent_id":"b"}],"multiagent":{"parallel":true}`)
	k.with("top")
	w := httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"do handoff_to_lead (handoff_to_a hang); handoff_to_b hang"}`, "Content-Type", "application/json", "Prefer", "respond-async")
	if w.Code != 202 {
		t.Fatal(w.Body)
	}
	for range 2 {
		<-k.hung
	}
	began := time.Now()
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	for range 4 { // the turn, and those that it and the lead have handed work to
		<-k.ended
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, one := range k.threads() {
		if one.Status != "terminated" {
			t.Errorf("%+v", one)
		}
	}
	if got := kinds(k.events("")); strings.Count(got, "thread_terminated") != 2 {
		t.Error(got)
	}
	if s := k.session(); s.Usage.InputTokens < 40 { // of the answers and summaries that there were
		t.Errorf("%+v", s.Usage)
	}
	if turn := k.say("hello"); turn.Content != "Top: hello" {
		t.Errorf("%+v", turn)
	}
}

func TestSwarm(t *testing.T) {
	k := openWith(t, `{}`, obey)
	k.agent("Billing", `,"tools":[{"type":"sandbox"}],"tool_policy":{"require_confirmation":["run_code"]}`)
	k.agent("Technical", `,"tools":[{"type":"sandbox"}]`)
	k.agent("Triage", `,"handoffs":[{"agent_id":"billing"},{"agent_id":"technical"}],"tool_policy":{"deny_list":["read_file"]},"multiagent":{"mode":"swarm","max_delegations":3}`)
	k.with("triage")
	turn := k.say("do handoff_to_billing money; handoff_to_technical too")
	if !strings.HasPrefix(turn.Content, "Billing: The conversation was handed on. From here on you are Billing") || !strings.Contains(turn.Content, "money | The conversation was not handed on: it is handed on once at a time.") {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	if got := kinds(k.events("")); got != "message status tool_use tool_use tool_result speaker tool_result message usage status" {
		t.Error(got)
	}
	s := k.session()
	if s.Speaker.AgentID == s.AgentID || len(k.threads()) != 0 {
		t.Errorf("%+v", s)
	}
	// The peer speaks in later turns, by its own policy and that of the session's agent.
	turn = k.say("do run_code; read_file")
	if turn.Status != "requires_action" || len(turn.RequiresAction) != 1 {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	turn = k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[0].ToolUseID))
	if turn.Content != `Billing: did run_code | there is no tool "read_file"` && turn.Content != `Billing: there is no tool "read_file" | did run_code` {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	// Any peer hands on to any other, so often.
	turn = k.say("do handoff_to_triage then handoff_to_technical then handoff_to_billing then handoff_to_triage then run_code")
	if turn.Status != "requires_action" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	if got := kinds(k.events("")); strings.Count(got, "speaker") != 4 {
		t.Error(got)
	}
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	if turn = k.say("who?"); turn.Content != "Billing: who?" {
		t.Errorf("%+v", turn)
	}
}

// TestQueuedSpeaker: a message that waited is answered by who speaks by then.
func TestQueuedSpeaker(t *testing.T) {
	queued := make(chan struct{})
	k := openWith(t, `{}`, func(q model.Request) []model.Delta { <-queued; return obey(q) })
	k.agent("Billing", "")
	k.agent("Triage", `,"handoffs":[{"agent_id":"billing"}],"multiagent":{"mode":"swarm"}`)
	k.with("triage")
	w := httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"do handoff_to_billing"}`, "Content-Type", "application/json", "Prefer", "respond-async")
	if w.Code != 202 {
		t.Fatal(w.Body)
	}
	k.post(202, `{"type":"message","content":"who?","queue":true}`)
	close(queued)
	for range 2 {
		<-k.ended
	}
	all := k.events("")
	if last := all[len(all)-3]; *last.Content != "Billing: who?" {
		t.Errorf("%+v", last)
	}
}

// TestSessionBudgetOfTree: what agents use that work was handed to counts.
func TestSessionBudgetOfTree(t *testing.T) {
	k := lead(t, `,"multiagent":{"parallel":true,"context_sharing":"full"}`)
	var made struct{ ID string }
	k.ask(201, "POST", "/v1/sessions", `{"agent_id":"lead","budget":{"tokens":50}}`, &made)
	k.path = "/v1/sessions/" + made.ID
	turn := k.say("do handoff_to_a (run_code then run_code then run_code); handoff_to_b hello")
	if turn.Status != "incomplete" || turn.Error == nil || turn.Error.Code != "session_budget" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	if used := k.session().Usage; used.InputTokens+used.OutputTokens > 50+3*15 {
		t.Errorf("%+v", used)
	}
	k.post(429, `{"type":"message","content":"more"}`)
}
