package sessiontest

import (
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// threads has work handed on in a turn.
func threads(t *testing.T, s session.Store, runs run.Store) {
	ctx, k := t.Context(), talk{t, s, runs, made("ten_1")}
	must(t, s.Create(ctx, k.v, 0))
	n, err := k.begin("ten_1", k.now(), said("Hi"))
	must(t, err)
	to := run.Member{Agent: string(agent.NewID()), Version: 3, Name: "Research"}
	var opened []*session.Thread
	for i := range 3 {
		one := &session.Thread{
			ID: run.ThreadOf(run.ChildOf(n.run.ID, i+1)), Session: k.v.ID, Tenant: "ten_1", Turn: n.run.ID, Agent: agent.ID(to.Agent), Version: to.Version, Name: to.Name,
		}
		for range 2 { // again is no error
			if err = s.OpenThread(ctx, one, 2); i < 2 {
				must(t, err)
			}
		}
		opened = append(opened, one)
	}
	refused(t, err, fault.Exhausted)
	other := *opened[2]
	other.Tenant = "ten_2"
	refused(t, s.OpenThread(ctx, &other, 9), fault.NotFound)

	// The run of one ends it, and another one's never begins.
	child, trace, err := n.hand(1, to)
	must(t, err)
	if len(trace.Charges) != 1 || trace.Charges[0].Cost != 1 || len(trace.Rows) != 1 {
		t.Errorf("the summary is charged as %+v", trace.Charges)
	}
	if _, err := s.ArchiveThread(ctx, "ten_1", k.v.ID, opened[0].ID); err != session.ErrThreadRuns {
		t.Errorf("archive one that runs: %v", err)
	}
	must(t, runs.Cancel(ctx, "ten_1", n.run.ID))
	if all, err := runs.Cancelled(ctx, "here"); err != nil || !slices.Contains(all, child.run.ID) || !slices.Contains(all, n.run.ID) {
		t.Errorf("cancelled with the turn: %v, %v", all, err)
	}
	child.answered(model.Text(model.Assistant, "done"))
	child.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	got, err := s.Thread(ctx, "ten_1", k.v.ID, opened[0].ID)
	must(t, err)
	if got.Status != session.ThreadIdle || got.EndedAt.IsZero() || got.Used.Usage.Input != 17 || got.Used.Cost != 4 || got.Name != "Research" || got.Version != 3 || got.Turn != n.run.ID {
		t.Errorf("%+v", got)
	}
	all, next, err := s.ThreadEvents(ctx, got, session.EventFilter{Page: agent.Page{Limit: 3}})
	must(t, err)
	rest, end, err := s.ThreadEvents(ctx, got, session.EventFilter{Page: agent.Page{Limit: 100, Cursor: next}})
	must(t, err)
	want := []run.EventKind{run.EventSummary, run.EventMessage, run.EventStatus, run.EventRequest, run.EventMessage, run.EventAnswer, run.EventUsage, run.EventStatus}
	if got := kinds(append(all, rest...)); !slices.Equal(got, want) || end != "" {
		t.Errorf("%v, want %v", got, want)
	}
	after, err := s.ThreadAfter(ctx, got, 3, 2)
	must(t, err)
	if got := kinds(after); !slices.Equal(got, want[3:5]) || after[0].Seq != 4 {
		t.Errorf("after the third: %v", got)
	}
	last, _, err := s.ThreadEvents(ctx, got, session.EventFilter{Page: agent.Page{Limit: 1}, Last: true, Kinds: []run.EventKind{run.EventMessage}})
	must(t, err)
	if len(last) != 1 || last[0].Item.Message.Parts[0].Text != "done" {
		t.Errorf("%+v", last)
	}
	tree(k, opened[0].ID)
	if e, err := s.Latest(ctx, "ten_1", k.v.ID, run.EventUsage); err != nil || e == nil || e.Spent.Usage.Input != 17 {
		t.Errorf("the last one of a kind: %+v, %v", e, err)
	}
	if e, err := s.Latest(ctx, "ten_1", k.v.ID, run.EventDocument); err != nil || e != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if v := k.now(); v.Events != 2 || v.Run != n.run.ID {
		t.Errorf("the session has heard of the thread: %+v", v)
	}
	must(t, s.CloseThread(ctx, opened[0]))
	if err := s.OpenThread(ctx, opened[0], 9); err != session.ErrThreadEnded {
		t.Errorf("again, once it has ended: %v", err)
	}
	spoken(n, to)
	page, next, err := s.Threads(ctx, "ten_1", k.v.ID, session.ThreadFilter{Page: agent.Page{Limit: 1}})
	must(t, err)
	if len(page) != 1 || page[0].ID != opened[1].ID || page[0].Status != session.ThreadTerminated || next == "" {
		t.Errorf("%+v", page)
	}
	if page, next, err = s.Threads(ctx, "ten_1", k.v.ID, session.ThreadFilter{Page: agent.Page{Limit: 1, Cursor: next}}); err != nil || len(page) != 1 || page[0].Status != session.ThreadIdle || next != "" {
		t.Errorf("%+v, %v", page, err)
	}
	_, _, err = s.Threads(ctx, "ten_2", k.v.ID, session.ThreadFilter{Page: agent.Page{Limit: 1}})
	refused(t, err, fault.NotFound)
	idle := []session.ThreadStatus{session.ThreadIdle}
	if page, next, err = s.Threads(ctx, "ten_1", k.v.ID, session.ThreadFilter{Page: agent.Page{Limit: 2}, Statuses: idle}); err != nil || len(page) != 1 || page[0].ID != opened[0].ID || next != "" {
		t.Errorf("those of a status: %+v, %v", page, err)
	}
	if page, _, err = s.Threads(ctx, "ten_1", k.v.ID, session.ThreadFilter{Page: agent.Page{Limit: 2}, Statuses: []session.ThreadStatus{}}); err != nil || len(page) != 0 {
		t.Errorf("those of no status: %+v, %v", page, err)
	}
	archived(t, s, k.v.ID, opened[0].ID)
	_, err = s.Thread(ctx, "ten_2", k.v.ID, opened[0].ID)
	refused(t, err, fault.NotFound)
	_, err = s.Thread(ctx, "ten_1", k.v.ID, opened[2].ID)
	refused(t, err, fault.NotFound)
	must(t, s.Delete(ctx, "ten_1", k.v.ID))
	if gone, err := runs.Expire(ctx, 100); err != nil || len(gone) != 2 {
		t.Errorf("%d runs expired, %v", len(gone), err)
	}
}

// tree reads the states of the session, which is at work, and of a thread, which has ended.
func tree(k talk, thread string) {
	k.Helper()
	var of []string
	p := agent.Page{Limit: 1}
	for {
		page, next, err := k.s.Tree(k.Context(), "ten_1", k.v.ID, run.EventStatus, p)
		must(k.T, err)
		for _, e := range page {
			of = append(of, e.Thread)
		}
		if p.Cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(of, []string{"", thread, thread}) {
		k.Errorf("the events of the tree are of %q", of)
	}
	_, _, err := k.s.Tree(k.Context(), "ten_2", k.v.ID, run.EventStatus, agent.Page{Limit: 1})
	refused(k.T, err, fault.NotFound)
}

// archived has a thread put aside that has ended.
func archived(t *testing.T, s session.Store, of session.ID, thread string) {
	ctx := t.Context()
	_, err := s.ArchiveThread(ctx, "ten_2", of, thread)
	refused(t, err, fault.NotFound)
	first, err := s.ArchiveThread(ctx, "ten_1", of, thread)
	must(t, err)
	again, err := s.ArchiveThread(ctx, "ten_1", of, thread)
	must(t, err)
	if first.ArchivedAt.IsZero() || !again.ArchivedAt.Equal(first.ArchivedAt) || !again.Changed().Equal(first.ArchivedAt) || first.Status != session.ThreadIdle {
		t.Errorf("%+v, again %+v", first, again)
	}
}

// hand begins the run of the hand-off of n that has a number.
func (n *turn) hand(number int, to run.Member) (*turn, run.Trace, error) {
	n.Helper()
	id := run.ChildOf(n.run.ID, number)
	child := &turn{talk: n.talk, run: &run.Run{ID: id, Tenant: n.run.Tenant, Session: n.run.Session, Top: n.run.ID, Keep: time.Hour}, state: run.NewState(id)}
	q := run.Request{
		Models: []string{"m"}, Tools: tools, Input: []model.Item{model.Text(model.User, "before"), model.Text(model.User, "task")}, Before: 1,
		Thread: &run.Thread{ID: run.ThreadOf(id), Session: n.run.Session, Member: to, Summary: &run.Summary{Text: "before", Model: "m", Usage: model.Usage{Input: 7, Output: 2}, Cost: model.Cost{Total: 1}}},
	}
	first := []run.Entry{{Seq: 1, At: time.Now(), Begun: &q}}
	trace, err := child.state.Record(child.run, &first[0])
	must(n.T, err)
	child.lease, err = n.runs.Create(n.Context(), child.run, first, "here", 0, nil, trace)
	return child, trace, err
}

// orphans has work begun by a process that drives the turn no more.
func orphans(t *testing.T, s session.Store, runs run.Store) {
	ctx, k, to := t.Context(), talk{t, s, runs, made("ten_1")}, run.Member{Agent: string(agent.NewID()), Version: 3, Name: "Research"}
	must(t, s.Create(ctx, k.v, 0))
	n, err := k.begin("ten_1", k.now(), said("Hi"))
	must(t, err)
	for i := range 2 {
		id := run.ChildOf(n.run.ID, i+1)
		must(t, s.OpenThread(ctx, &session.Thread{ID: run.ThreadOf(id), Session: k.v.ID, Tenant: "ten_1", Turn: n.run.ID, Agent: agent.ID(to.Agent), Version: to.Version, Name: to.Name}, 9))
	}
	child, _, err := n.hand(1, to)
	must(t, err)
	n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	if all, err := runs.Cancelled(ctx, "here"); err != nil || !slices.Equal(all, []run.ID{child.run.ID}) {
		t.Errorf("cancelled at the end of the turn: %v, %v", all, err)
	}
	_, _, err = n.hand(2, to)
	refused(t, err, fault.Conflict)
	child.add(run.Entry{Ended: &run.End{Status: run.Cancelled}})
}

// spoken ends a turn in which the conversation moved.
func spoken(n *turn, to run.Member) {
	n.answered(call("c1", "look"))
	n.add(run.Entry{Calling: &run.Calling{Call: "c1"}})
	n.add(run.Entry{Called: &run.Called{
		Call: "c1", Result: *result("c1").Result, Moves: &run.Move{To: to, Request: &run.Request{Models: []string{"other"}, Instructions: "You are another."}},
		Below: run.Spent{Usage: model.Usage{Input: 17, Output: 7}, Cost: 4},
	}})
	if next := n.state.Next(time.Now(), run.Known{Spec: func(string) model.Spec { return model.Spec{} }}); next.Ask == nil || next.Ask.Model != "other" || n.state.Request.Instructions != "You are another." || n.state.Moves != 1 {
		n.Errorf("after the move: %+v", next)
	}
	n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	if v := n.now(); v.Speaker != (session.Speaker{Agent: agent.ID(to.Agent), Version: to.Version}) || v.Used.Usage.Input != 27 || v.Used.Cost != 7 {
		n.Errorf("%+v", v)
	}
}
