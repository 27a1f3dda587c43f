package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func (k *talk) otherThreads(query string) (all []anthropic.Thread, next string) {
	k.Helper()
	var page struct {
		Data     []anthropic.Thread
		NextPage *string `json:"next_page"`
	}
	if k.other(200, "GET", "/threads"+query, "", &page); page.NextPage != nil {
		next = *page.NextPage
	}
	return page.Data, next
}

// TestThreadsOfOtherForm: the session's own conversation is the primary thread, and work that was
// handed on is in others below it.
func TestThreadsOfOtherForm(t *testing.T) {
	k := lead(t, `,"multiagent":{"parallel":true}`)
	k.agent("Top", `,"handoffs":[{"agent_id":"lead","name":"Boss"},{"agent_id":"b"}]`)
	k.with("top")
	if turn := k.say("do handoff_to_boss (handoff_to_a x)"); turn.Content != "Top: Lead: A: x" {
		t.Fatalf("%+v", turn)
	}
	all, next := k.otherThreads("")
	if len(all) != 3 || next != "" {
		t.Fatalf("%+v %q", all, next)
	}
	primary, a, boss := all[0], all[1], all[2]
	if primary.ParentThreadID != nil || primary.ID != "sthr_"+primary.SessionID[len("sess_"):] || primary.Agent.Name != "Top" || primary.Status != "idle" || primary.Usage.InputTokens == 0 {
		t.Errorf("%+v", primary)
	}
	if *boss.ParentThreadID != primary.ID || *a.ParentThreadID != boss.ID || boss.Name != "Boss" || boss.Agent.Name != "Lead" || a.Usage == nil || a.Usage.InputTokens != 20 || a.ArchivedAt != nil {
		t.Errorf("%+v %+v", boss, a)
	}
	var s anthropic.Session
	if k.other(200, "GET", "", "", &s); len(s.Agent.Multiagent.Agents) != 2 {
		t.Errorf("%+v", s.Agent)
	}
	var paged []string
	for page := ""; ; {
		some, next := k.otherThreads("?limit=1" + page)
		for _, one := range some {
			paged = append(paged, one.ID)
		}
		if page = "&page=" + next; next == "" {
			break
		}
	}
	if !slices.Equal(paged, []string{primary.ID, a.ID, boss.ID}) {
		t.Errorf("%v", paged)
	}
	for query, want := range map[string]int{"?statuses=idle": 3, "?statuses[]=running&statuses[]=terminated": 0, "?statuses=rescheduling": 0} {
		if some, _ := k.otherThreads(query); len(some) != want {
			t.Errorf("%s: %+v", query, some)
		}
	}
	var page struct{ Data []anthropic.Event }
	k.other(200, "GET", "/threads/"+boss.ID+"/events", "", &page)
	const want = "context_summary thread_message_received thread_status_running model_request_start tool_use model_request_end thread_created thread_message_sent thread_message_received thread_status_idle tool_result model_request_start message model_request_end usage thread_status_idle"
	if got := kindsOf(page.Data); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	task, end := page.Data[1], page.Data[len(page.Data)-1]
	if task.FromSessionThreadID != primary.ID || task.FromAgentName != "" || *task.Content[0].Text != "do handoff_to_a x" || end.SessionThreadID != boss.ID || end.AgentName != "Boss" || end.StopReason.Type != "end_turn" {
		t.Errorf("%+v %+v", task, end)
	}
	k.other(200, "GET", "/threads/"+a.ID+"/events?limit=2", "", &page)
	if len(page.Data) != 2 || page.Data[1].FromSessionThreadID != boss.ID || page.Data[1].FromAgentName != "Boss" {
		t.Errorf("%+v", page.Data)
	}
	k.other(200, "GET", "/threads/"+primary.ID+"/events", "", &page)
	if !strings.HasPrefix(kindsOf(page.Data), "message status_running model_request_start tool_use model_request_end thread_created") {
		t.Error(kindsOf(page.Data))
	}
	// Streams continue after any event of theirs.
	k.other(200, "GET", "/threads/"+boss.ID+"/events", "", &page)
	for _, path := range []string{"/stream", "/events/stream"} {
		w := httpapitest.Ask(k.Server, "GET", "/anthropic"+k.path+"/threads/"+boss.ID+path, "", "Last-Event-ID", task.ID)
		if got, _ := frames(w.Body.String()); w.Code != 200 || len(got) != len(page.Data)-2 || got[0] != "session.thread_status_running" || got[len(got)-1] != "session.thread_status_idle" {
			t.Errorf("%s: %d %v", path, w.Code, got)
		}
	}
	k.other(400, "GET", "/threads/"+boss.ID+"/stream?cursor=sevt_1", "", nil)
	// One that has ended can be put aside, and stays in the list.
	var one anthropic.Thread
	for range 2 {
		if k.other(200, "POST", "/threads/"+a.ID+"/archive", "", &one); one.ArchivedAt == nil || one.Status != "idle" || one.UpdatedAt != *one.ArchivedAt {
			t.Errorf("%+v", one)
		}
	}
	if all, _ = k.otherThreads(""); len(all) != 3 || all[1].ArchivedAt == nil || k.threads()[1].ArchivedAt == nil {
		t.Errorf("%+v", all)
	}
	k.other(409, "POST", "/threads/"+primary.ID+"/archive", "", nil)
	k.other(404, "GET", "/threads/sthr_00000000000000000000000000000000", "", nil)
	k.other(200, "POST", "/archive", "", nil)
	w := httpapitest.Ask(k.Server, "GET", "/anthropic"+k.path+"/threads/"+primary.ID+"/stream?cursor="+k.list("?order=desc&limit=1")[0].ID, "")
	if got, _ := frames(w.Body.String()); len(got) != 1 || got[0] != "session.status_terminated" {
		t.Errorf("%v", got)
	}
}
