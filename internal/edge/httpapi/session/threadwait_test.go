package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func approves(id string) string {
	return fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, id)
}

func denies(id string) string {
	return fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":false,"reason":"no files"}`, id)
}

func gives(id string) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"mine"}`, id)
}

// TestThreadWaits: calls of an agent that work was handed to wait for the client, with the turn, and
// the agent continues with the answers.
func TestThreadWaits(t *testing.T) {
	k := lead(t, `,"multiagent":{"parallel":true}`)
	turn := k.say("do handoff_to_a (write_file+theirs+glob); handoff_to_b hello")
	if turn.Status != "requires_action" || len(turn.RequiresAction) != 2 {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	threads := k.threads()
	slices.SortFunc(threads, func(a, b sessionapi.SessionThread) int { return strings.Compare(a.Name, b.Name) })
	a := threads[0]
	file, theirs := turn.RequiresAction[0], turn.RequiresAction[1]
	if file.Name != "write_file" || file.Needs != "tool_confirmation" || *file.ThreadID != a.ID || *file.Arguments != "{}" || theirs.Name != "theirs" || theirs.Needs != "tool_result" || *theirs.ThreadID != a.ID {
		t.Errorf("%+v", turn.RequiresAction)
	}
	if s := k.session(); s.Status != "requires_action" || a.Status != "requires_action" || a.EndedAt != nil || threads[1].Status != "idle" {
		t.Errorf("%+v %+v", s, threads)
	}
	all := k.events("")
	at := slices.IndexFunc(all, func(e sessionapi.SessionEvent) bool { return e.ID == file.ToolUseID })
	if at < 0 || all[at].Type != "tool_use" || *all[at].Name != "write_file" || *all[at].Thread.ThreadID != a.ID || all[at].Thread.Name != "A" || all[len(all)-1].StopReason.RequiresAction[0].ToolUseID != file.ToolUseID {
		t.Errorf("%+v", all)
	}
	k.post(409, `{"type":"message","content":"continue"}`)
	k.post(409, gives(file.ToolUseID))
	// One answer is kept while the other call waits; it may be named as the thread does.
	own := k.events("/threads/" + a.ID)
	mine := own[slices.IndexFunc(own, func(e sessionapi.SessionEvent) bool { return e.Type == "tool_use" && *e.Name == "theirs" })].ID
	if turn = k.post(200, gives(mine)); turn.ID != nil || len(turn.RequiresAction) != 1 || turn.RequiresAction[0].ToolUseID != file.ToolUseID {
		t.Errorf("%+v", turn)
	}
	k.post(409, gives(theirs.ToolUseID))
	if turn = k.post(200, approves(file.ToolUseID)); turn.Status != "completed" || turn.Content != "Lead: A: did glob | mine | did write_file | B: hello" && turn.Content != "Lead: B: hello | A: did glob | mine | did write_file" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	again := k.threads()
	slices.SortFunc(again, func(a, b sessionapi.SessionThread) int { return strings.Compare(a.Name, b.Name) })
	if len(again) != 2 || again[0].ID != a.ID || again[0].Status != "idle" || again[0].Usage.InputTokens != 30 || again[0].TurnID == a.TurnID {
		t.Errorf("%+v", again)
	}
	if got := kinds(k.events("/threads/" + a.ID)); got != "context_summary message status tool_use tool_use tool_use tool_result usage status tool_result tool_confirmation status tool_result message usage status" &&
		got != "context_summary message status tool_use tool_use tool_use tool_result usage status tool_confirmation tool_result status tool_result message usage status" {
		t.Error(got)
	}
	// Lead 2 answers, a summary for each, A 2, B 1.
	if s := k.session(); s.Usage.InputTokens != 70 {
		t.Errorf("%+v", s.Usage)
	}
	if turn = k.say("thanks"); turn.Content != "Lead: thanks" {
		t.Errorf("%+v", turn)
	}
}

// TestThreadWaitsBelow: a call two levels down waits, is denied, waits again and is given up.
func TestThreadWaitsBelow(t *testing.T) {
	k := lead(t, "")
	k.agent("Top", `,"handoffs":[{"agent_id":"lead"}]`)
	k.with("top")
	turn := k.say("do handoff_to_lead (handoff_to_a (write_file@theirs))")
	if turn.Status != "requires_action" || len(turn.RequiresAction) != 1 {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	threads := k.threads()
	if len(threads) != 2 || *turn.RequiresAction[0].ThreadID != threads[1].ID || threads[0].Status != "requires_action" || threads[1].Status != "requires_action" {
		t.Errorf("%+v %+v", turn.RequiresAction, threads)
	}
	turn = k.post(200, denies(turn.RequiresAction[0].ToolUseID))
	if turn.Status != "requires_action" || turn.RequiresAction[0].Name != "theirs" || *turn.RequiresAction[0].ThreadID != threads[1].ID {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	told := k.events("/threads/" + threads[1].ID)
	if at := slices.IndexFunc(told, func(e sessionapi.SessionEvent) bool { return e.Type == "tool_confirmation" }); at < 0 || *told[at].Reason != "no files" || !strings.HasSuffix(*told[at+1].Content, "The user's reason: no files") {
		t.Errorf("%s", kinds(told))
	}
	if turn = k.post(200, gives(turn.RequiresAction[0].ToolUseID)); turn.Content != "Top: Lead: A: mine" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	turn = k.say("do handoff_to_lead (handoff_to_a (write_file))")
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	for _, one := range k.threads()[2:] {
		if one.Status != "terminated" || one.EndedAt == nil {
			t.Errorf("%+v", one)
		}
	}
	k.post(409, approves(turn.RequiresAction[0].ToolUseID))
	if turn = k.say("hello"); turn.Content != "Top: hello" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
}

// TestThreadExpires has no answer in time.
func TestThreadExpires(t *testing.T) {
	k := lead(t, `,"tool_policy":{"confirm_within":1}`)
	if turn := k.say("do handoff_to_a (write_file)"); turn.Status != "requires_action" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	atolltest.Until(t, time.Minute, "the calls expire", func() bool { return k.session().Status == "idle" })
	if got := k.threads()[0]; got.Status != "terminated" {
		t.Errorf("%+v", got)
	}
	if turn := k.say("hello"); turn.Content != "Lead: hello" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
}

// TestOwnSandboxEnds: the sandbox that an agent has to itself stays while it waits, is the same when it
// continues, and ends with the work however that ends.
func TestOwnSandboxEnds(t *testing.T) {
	k := lead(t, `,"multiagent":{"parallel":true,"context_sharing":"full","sandbox":"own"}`)
	last := func() (last sessionapi.SessionThread) {
		t.Helper()
		for _, one := range k.threads() {
			if one.Name == "A" {
				last = one
			}
		}
		return last
	}
	waits := func() string {
		t.Helper()
		turn := k.say("do handoff_to_a (write_file)")
		if turn.Status != "requires_action" {
			t.Fatalf("%+v %+v", turn, turn.Error)
		}
		if names := k.freed.take(); len(names) > 0 {
			t.Errorf("%q ended while calls wait", names)
		}
		return turn.RequiresAction[0].ToolUseID
	}
	ended := func(by string) {
		t.Helper()
		want := run.SandboxOf(run.OfThread(last().ID))
		if names := k.freed.take(); !slices.Contains(names, want) {
			t.Errorf("%s: %q ended, without %q", by, names, want)
		}
	}
	if turn := k.post(200, approves(waits())); turn.Status != "completed" {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	ended("an answer")
	waits()
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	ended("the end of the wait")

	before := last().ID
	if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"do handoff_to_a (write_file); handoff_to_b hang"}`, "Prefer", "respond-async"); w.Code != 202 {
		t.Fatal(w.Body)
	}
	<-k.hung
	atolltest.Until(t, time.Minute, "one waits while the other one works", func() bool {
		of := last().ID
		return of != before && slices.ContainsFunc(k.events(""), func(e sessionapi.SessionEvent) bool {
			return e.Type == "tool_use" && e.Thread != nil && *e.Thread.ThreadID == of
		})
	})
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	atolltest.Until(t, time.Minute, "the turn ends", func() bool { return k.session().Status == "idle" })
	ended("an interrupted turn")

	waits()
	thread := last()
	lines := k.open(k.path + "/threads/" + thread.ID + "/events/stream")
	k.ask(200, "POST", k.path+"/archive", "", nil)
	ended("the session's end")
	if now := last(); now.ID != thread.ID || now.Status != "terminated" || now.EndedAt == nil {
		t.Fatalf("%+v", now)
	}
	for lines.Scan() { // the stream ends, too
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

// TestThreadWaitsInOtherForm: the call is told of in the primary thread, too, and says where it is.
func TestThreadWaitsInOtherForm(t *testing.T) {
	k := lead(t, "")
	k.say("do handoff_to_a (write_file+theirs)")
	use := k.list("?types=agent.tool_use&types=agent.custom_tool_use")
	idle := k.list("?types=session.status_idle")
	if len(use) != 3 || use[1].SessionThreadID != k.threads()[0].ID || use[1].EvaluatedPermission != "ask" || use[2].Type != "agent.custom_tool_use" || !slices.Equal(idle[0].StopReason.EventIDs, []string{use[1].ID, use[2].ID}) {
		t.Fatalf("%+v %+v", use, idle)
	}
	all, _ := k.otherThreads("?statuses=idle")
	if len(all) != 2 {
		t.Errorf("%+v", all)
	}
	var page struct{ Data []anthropic.Event }
	k.other(200, "GET", "/threads/"+use[1].SessionThreadID+"/events", "", &page)
	if last := page.Data[len(page.Data)-1]; last.Type != "session.thread_status_idle" || last.StopReason.Type != "requires_action" || len(last.StopReason.EventIDs) != 2 {
		t.Errorf("%+v", last)
	}
	confirmed := fmt.Sprintf(`{"type":"user.tool_confirmation","tool_use_id":%q,"result":"deny","session_thread_id":%%q}`, use[1].ID)
	result := fmt.Sprintf(`{"type":"user.custom_tool_result","custom_tool_use_id":%q,"content":[{"type":"text","text":"mine"}]}`, use[2].ID)
	k.put(400, fmt.Sprintf(confirmed, "sthr_1"), result)
	sent := k.put(200, fmt.Sprintf(confirmed, use[1].SessionThreadID), result)
	if len(sent) != 2 || sent[0].SessionThreadID != use[1].SessionThreadID || sent[1].Type != "user.custom_tool_result" || sent[1].SessionThreadID != use[1].SessionThreadID {
		t.Errorf("%+v", sent)
	}
	atolltest.Until(t, time.Minute, "the turn ends", func() bool { return k.session().Status == "idle" })
	said := k.list("?types=agent.message")
	if text := *said[len(said)-1].Content[0].Text; !strings.Contains(text, "The user did not allow this call") || !strings.Contains(text, "mine") {
		t.Errorf("%q", text)
	}
}
