// Package sessiontest is the suite that every session.Store passes, with the run.Store that
// begins and ends turns.
package sessiontest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/test/check"
)

func made(tenant string) *session.Session {
	return &session.Session{
		ID: session.NewID(), Tenant: tenant, Key: "key_1", Environment: "env_1", Agent: agent.NewID(), Version: 2, Sandbox: "sbx_1",
		About:  session.About{Title: "Return", Metadata: map[string]json.RawMessage{"user_id": json.RawMessage(`"user_456"`)}},
		Budget: session.Budget{Tokens: 1000, Cost: 500}, Vaults: []vault.ID{"vlt_2", "vlt_1"},
	}
}

// Store checks a store; open makes an empty one.
func Store(t *testing.T, open func(t *testing.T) (session.Store, run.Store)) {
	t.Run("sessions", func(t *testing.T) { s, _ := open(t); sessions(t, s) })
	t.Run("turns", func(t *testing.T) { s, r := open(t); turns(t, s, r) })
	t.Run("queue", func(t *testing.T) { s, r := open(t); queue(t, s, r) })
	t.Run("threads", func(t *testing.T) { s, r := open(t); threads(t, s, r) })
	t.Run("orphans", func(t *testing.T) { s, r := open(t); orphans(t, s, r) })
	t.Run("held", func(t *testing.T) { s, r := open(t); held(t, s, r) })
	t.Run("fair queue", func(t *testing.T) { s, _ := open(t); fair(t, s) })
	t.Run("compaction", func(t *testing.T) { s, r := open(t); compaction(t, s, r) })
	t.Run("bounds", func(t *testing.T) { s, r := open(t); bounds(t, s, r) })
}

var must = check.Must

func refused(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%v, want a fault of kind %d", err, kind)
	}
}

func sessions(t *testing.T, s session.Store) {
	ctx, a, b := t.Context(), made("ten_1"), made("ten_1")
	must(t, s.Create(ctx, a, 2))
	must(t, s.Create(ctx, b, 2))
	refused(t, s.Create(ctx, made("ten_1"), 2), fault.Exhausted)
	got, err := s.Get(ctx, "ten_1", a.ID)
	must(t, err)
	if !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, want %+v", got, a)
	}
	if _, err := s.Get(ctx, "ten_2", a.ID); err != session.ErrNotFound {
		t.Errorf("another tenant: %v", err)
	}
	_, err = s.Update(ctx, "ten_2", a.ID, session.About{}, session.Budget{})
	refused(t, err, fault.NotFound)
	refused(t, s.Delete(ctx, "ten_2", a.ID), fault.NotFound)
	_, err = s.Archive(ctx, "ten_2", a.ID)
	refused(t, err, fault.NotFound)
	_, _, err = s.Events(ctx, "ten_2", a.ID, session.EventFilter{Page: agent.Page{Limit: 1}})
	refused(t, err, fault.NotFound)
	_, err = s.After(ctx, "ten_2", a.ID, 0, 1)
	refused(t, err, fault.NotFound)
	refused(t, s.Answer(ctx, &session.Session{ID: a.ID, Tenant: "ten_2"}, nil, true), fault.NotFound)
	page, next, err := s.List(ctx, "ten_1", session.Filter{Page: agent.Page{Limit: 1}})
	must(t, err)
	if len(page) != 1 || page[0].ID != b.ID || next == "" {
		t.Fatalf("%+v %q", page, next)
	}
	page, next, err = s.List(ctx, "ten_1", session.Filter{Page: agent.Page{Limit: 1, Cursor: next}})
	must(t, err)
	if len(page) != 1 || page[0].ID != a.ID || next != "" {
		t.Errorf("%+v %q", page, next)
	}
	page, _, err = s.List(ctx, "ten_1", session.Filter{Page: agent.Page{Limit: 9}, Agent: a.Agent})
	must(t, err)
	if len(page) != 1 || page[0].ID != a.ID {
		t.Errorf("of an agent: %+v", page)
	}
	got, err = s.Update(ctx, "ten_1", a.ID, session.About{Title: "Other"}, session.Budget{Tokens: 2000, Cost: 100})
	must(t, err)
	if got.Budget != (session.Budget{Tokens: 2000, Cost: 500}) {
		t.Errorf("the budget was raised to %+v", got.Budget)
	}
	if got.About.Title != "Other" || got.About.Metadata != nil {
		t.Errorf("changed: %+v", got.About)
	}
	for range 2 {
		got, err = s.Archive(ctx, "ten_1", a.ID)
		must(t, err)
		if !got.Archived() {
			t.Error("is not archived")
		}
	}
	_, err = s.Update(ctx, "ten_1", a.ID, session.About{}, session.Budget{})
	refused(t, err, fault.Conflict)
	choices(t, s, a, b)
	must(t, s.Delete(ctx, "ten_1", a.ID))
	refused(t, s.Delete(ctx, "ten_1", a.ID), fault.NotFound)
}

// choices lists sessions by filters: a is archived, and b, which was made later, is idle.
func choices(t *testing.T, s session.Store, a, b *session.Session) {
	for _, c := range []struct {
		f    session.Filter
		want []session.ID
	}{
		{session.Filter{}, []session.ID{b.ID}},
		{session.Filter{Archived: true}, []session.ID{b.ID, a.ID}},
		{session.Filter{Archived: true, First: true}, []session.ID{a.ID, b.ID}},
		{session.Filter{States: []session.State{session.Idle, session.Running}}, []session.ID{b.ID}},
		{session.Filter{States: []session.State{session.Ended}}, []session.ID{a.ID}},
		{session.Filter{States: []session.State{session.Running}}, nil},
		{session.Filter{States: []session.State{}}, nil},
		{session.Filter{Agent: b.Agent, Version: 2}, []session.ID{b.ID}},
		{session.Filter{Agent: b.Agent, Version: 3}, nil},
		{session.Filter{Span: session.Span{From: b.CreatedAt, Until: b.CreatedAt.Add(time.Nanosecond)}}, []session.ID{b.ID}},
		{session.Filter{Span: session.Span{From: b.CreatedAt.Add(time.Nanosecond)}}, nil},
		{session.Filter{Span: session.Span{Until: b.CreatedAt}}, nil},
	} {
		var got []session.ID
		for cursor := ""; ; {
			c.f.Page = agent.Page{Limit: 1, Cursor: cursor}
			page, next, err := s.List(t.Context(), "ten_1", c.f)
			must(t, err)
			for i := range page {
				got = append(got, page[i].ID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v chooses %v, want %v", c.f, got, c.want)
		}
	}
}

// talk is a conversation in a store.
type talk struct {
	*testing.T
	s    session.Store
	runs run.Store
	v    *session.Session
}

// turn is a turn under way.
type turn struct {
	talk
	run   *run.Run
	lease run.Lease
	state *run.State
}

func (k talk) now() *session.Session {
	k.Helper()
	v, err := k.s.Get(k.Context(), k.v.Tenant, k.v.ID)
	must(k.T, err)
	return v
}

var tools = []run.Tool{{Tool: model.Tool{Name: "look"}, Handler: "h"}, {Tool: model.Tool{Name: "write"}, Handler: "h", Approve: true}}

// begin begins a turn on what v says.
func (k talk) begin(tenant string, v *session.Session, q run.Request) (*turn, error) {
	k.Helper()
	ctx := k.Context()
	r := &run.Run{ID: run.NewID(), Tenant: tenant, Session: string(v.ID), Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()}
	n := &turn{talk: k, run: r, state: run.NewState(r.ID)}
	q.Models, q.Tools, q.Turn.Session, q.Turn.Until = []string{"m"}, tools, string(v.ID), v.Events
	var err error
	if n.state.Earlier, err = k.s.Conversation(ctx, q.Turn); err != nil {
		return nil, err
	}
	q.Turn.Items = len(n.state.Earlier)
	first := []run.Entry{{Seq: 1, At: time.Now(), Begun: &q}}
	trace, err := n.state.Record(r, &first[0])
	must(k.T, err)
	n.lease, err = k.runs.Create(ctx, r, first, "here", 0, nil, trace)
	return n, err
}

// add records an entry.
func (n *turn) add(e run.Entry) {
	n.Helper()
	e.Seq, e.At = n.state.Seq+1, time.Now()
	trace, err := n.state.Record(n.run, &e)
	must(n.T, err)
	must(n.T, n.runs.Append(n.Context(), n.run.ID, n.lease, []run.Entry{e}, trace))
}

func (n *turn) answered(items ...model.Item) {
	n.Helper()
	n.add(run.Entry{Asked: &run.Asked{Step: n.state.Steps + 1, Try: 1, Model: "m"}})
	n.add(run.Entry{Answered: &run.Answered{Answer: model.Answer{Items: items, Stop: model.StopToolCalls, Usage: model.Usage{Input: 10, Output: 5}}, Cost: model.Cost{Total: 3}}})
}

func said(text string) run.Request {
	return run.Request{Input: []model.Item{model.Text(model.User, text)}, Turn: &run.Turn{}}
}

func call(id, tool string) model.Item { return model.Item{Call: &model.Call{ID: id, Name: tool}} }

func result(id string) model.Item {
	return model.Item{Result: &model.Result{CallID: id, Parts: []model.Part{{Kind: model.PartText, Text: "of " + id}}}}
}

func kinds(all []session.Event) (out []run.EventKind) {
	for i := range all {
		out = append(out, all[i].Kind)
	}
	return out
}

func turns(t *testing.T, s session.Store, runs run.Store) {
	ctx, k := t.Context(), talk{t, s, runs, made("ten_1")}
	must(t, s.Create(ctx, k.v, 0))
	_, err := k.begin("ten_2", k.v, said("Hi"))
	refused(t, err, fault.NotFound)
	n, err := k.begin("ten_1", k.v, said("Hi"))
	must(t, err)
	if got := k.now(); got.Run != n.run.ID || got.Events != 2 {
		t.Errorf("while a turn is in progress: %+v", got)
	}
	_, err = k.begin("ten_1", k.now(), said("Hi"))
	refused(t, err, fault.Conflict)
	_, err = s.Archive(ctx, "ten_1", k.v.ID)
	refused(t, err, fault.Conflict)
	refused(t, s.Delete(ctx, "ten_1", k.v.ID), fault.Conflict)

	n.answered(call("c1", "look"), call("c2", "look"))
	for _, id := range []string{"c1", "c2"} {
		n.add(run.Entry{Calling: &run.Calling{Call: id}})
	}
	for _, id := range []string{"c2", "c1"} { // as they end
		n.add(run.Entry{Called: &run.Called{Call: id, Result: *result(id).Result}})
	}
	n.answered(model.Text(model.Assistant, "Hello"))
	n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	if got := k.now(); got.Run != "" || got.Events != 13 || got.Used.Usage.Input != 20 || got.Used.Usage.Output != 10 || got.Used.Cost != 6 || *got.Left().Tokens != 970 || *got.Left().Cost != 494 {
		t.Errorf("after the turn: %+v", got)
	}
	want := []model.Item{model.Text(model.User, "Hi"), call("c1", "look"), call("c2", "look"), result("c1"), result("c2"), model.Text(model.Assistant, "Hello")}
	if all, err := s.Conversation(ctx, &run.Turn{Session: string(k.v.ID), Until: 13}); err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	if after, err := s.Window(ctx, k.v.ID, 13); err != nil || after != 0 {
		t.Errorf("the conversation begins after %d, %v", after, err)
	}
	pages(t, s, k.v.ID)
	_, err = k.begin("ten_1", k.v, said("Hi")) // it was read before the turn
	refused(t, err, fault.Conflict)
	k.confirmed()
	_, err = s.Archive(ctx, "ten_1", k.v.ID)
	must(t, err)
	_, err = k.begin("ten_1", k.now(), said("Hi"))
	refused(t, err, fault.Conflict)
	must(t, s.Delete(ctx, "ten_1", k.v.ID))
	gone, err := runs.Expire(ctx, 100)
	must(t, err)
	if len(gone) != 6 {
		t.Errorf("%d runs expired", len(gone))
	}
}

// queue has turns wait for those before them.
// fair has turns of one tenant wait in many sessions, before that of another.
func fair(t *testing.T, s session.Store) {
	ctx := t.Context()
	for _, of := range []string{"ten_1", "ten_1", "ten_1", "ten_2"} {
		v := made(of)
		must(t, s.Create(ctx, v, 0))
		must(t, s.Enqueue(ctx, &session.Queued{Run: run.Run{ID: run.NewID(), Tenant: of, Session: string(v.ID), CreatedAt: time.Now()}}))
	}
	ready, err := s.Ready(ctx, 2)
	must(t, err)
	if len(ready) != 2 || ready[0].Run.Tenant != "ten_1" || ready[1].Run.Tenant != "ten_2" || *ready[0].Request.Limits.Session.Tokens != 1000 || *ready[0].Request.Limits.Session.Cost != 500 {
		t.Errorf("%+v", ready)
	}
}

func queue(t *testing.T, s session.Store, runs run.Store) {
	ctx, k := t.Context(), talk{t, s, runs, made("ten_1")}
	must(t, s.Create(ctx, k.v, 0))
	queued := func(tenant, text string) *session.Queued {
		return &session.Queued{
			Run:     run.Run{ID: run.NewID(), Tenant: tenant, Session: string(k.v.ID), Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()},
			Request: run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, text)}},
		}
	}
	refused(t, s.Enqueue(ctx, queued("ten_2", "no")), fault.NotFound)
	n, err := k.begin("ten_1", k.now(), said("one"))
	must(t, err)
	for i := range session.MaxQueued {
		must(t, s.Enqueue(ctx, queued("ten_1", fmt.Sprint(i))))
	}
	refused(t, s.Enqueue(ctx, queued("ten_1", "more")), fault.Exhausted)
	if ready, err := s.Ready(ctx, 9); err != nil || len(ready) != 0 || k.now().Queued != session.MaxQueued {
		t.Errorf("while a turn is in progress: %+v, %v", ready, err)
	}
	n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	ready, err := s.Ready(ctx, 9)
	must(t, err)
	if len(ready) != 1 || !reflect.DeepEqual(ready[0].Request.Input, []model.Item{model.Text(model.User, "0")}) || ready[0].Request.Turn.Until != k.now().Events {
		t.Fatalf("%+v", ready)
	}
	q := &ready[0]
	first := []run.Entry{{Seq: 1, At: time.Now(), Begun: &q.Request}}
	other := q.Run
	other.ID = run.NewID()
	_, err = runs.Create(ctx, &other, first, "there", 0, nil)
	refused(t, err, fault.Conflict) // it is not this run that is queued there
	state := run.NewState(q.Run.ID)
	if state.Earlier, err = s.Conversation(ctx, q.Request.Turn); err != nil {
		t.Fatal(err)
	}
	q.Request.Turn.Items = len(state.Earlier)
	trace, err := state.Record(&q.Run, &first[0])
	must(t, err)
	_, err = runs.Create(ctx, &q.Run, first, "here", 0, nil, trace)
	must(t, err)
	if v := k.now(); v.Run != q.Run.ID || v.Queued != session.MaxQueued-1 {
		t.Errorf("%+v", v)
	}
}

// bounds has turns begin with the end of a long session.
func bounds(t *testing.T, s session.Store, runs run.Store) {
	k := talk{t, s, runs, made("ten_1")}
	must(t, s.Create(t.Context(), k.v, 0))
	for _, c := range []struct {
		messages int   // of the turn
		after    int64 // the session's conversation begins there, once the turn has ended
	}{{session.MaxTurnItems / 2, 0}, {session.MaxTurnItems * 3 / 4, session.MaxTurnItems/2 + 6}, {session.MaxTurnItems + 1, session.MaxTurnItems*5/4 + 12}} {
		n, err := k.begin("ten_1", k.now(), said("Hi"))
		must(t, err)
		n.answered(slices.Repeat([]model.Item{model.Text(model.Assistant, "Hello")}, c.messages)...)
		n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
		v := k.now()
		after, err := s.Window(t.Context(), v.ID, v.Events)
		if err != nil || after != c.after {
			t.Errorf("after %d events the conversation begins after %d, want %d; %v", v.Events, after, c.after, err)
		}
		all, err := s.Conversation(t.Context(), &run.Turn{Session: string(v.ID), After: after, Until: v.Events})
		must(t, err)
		if !reflect.DeepEqual(all[0], model.Text(model.User, "Hi")) {
			t.Errorf("it begins with %+v", all[0])
		}
	}
}

func pages(t *testing.T, s session.Store, id session.ID) {
	ctx := t.Context()
	want := []run.EventKind{
		run.EventMessage, run.EventStatus, run.EventRequest, run.EventCall, run.EventCall, run.EventAnswer, run.EventResult, run.EventResult,
		run.EventRequest, run.EventMessage, run.EventAnswer, run.EventUsage, run.EventStatus,
	}
	var all []session.Event
	for cursor := ""; ; {
		page, next, err := s.Events(ctx, "ten_1", id, session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: 4}})
		must(t, err)
		all = append(all, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	for i := range all {
		if all[i].Seq != int64(i)+1 || all[i].Run == "" || all[i].At.IsZero() {
			t.Errorf("event %d: %+v", i, all[i])
		}
	}
	if !slices.Equal(kinds(all), want) {
		t.Errorf("%v", kinds(all))
	}
	if all[6].Of != all[4].Seq || all[7].Of != all[3].Seq {
		t.Errorf("results are of %d and %d", all[6].Of, all[7].Of)
	}
	last, _, err := s.Events(ctx, "ten_1", id, session.EventFilter{Page: agent.Page{Limit: 3}, Kinds: []run.EventKind{run.EventMessage, run.EventUsage}, Last: true})
	must(t, err)
	if !slices.Equal(kinds(last), []run.EventKind{run.EventUsage, run.EventMessage, run.EventMessage}) {
		t.Errorf("%v", kinds(last))
	}
	sorted(t, s, id, all)
	after, err := s.After(ctx, "ten_1", id, 7, 1)
	must(t, err)
	if len(after) != 1 || after[0].Seq != 8 {
		t.Errorf("%+v", after)
	}
}

// sorted chooses among the events of a turn, which are all there are.
func sorted(t *testing.T, s session.Store, id session.ID, all []session.Event) {
	for _, c := range []struct {
		f    session.EventFilter
		want []int64
	}{
		{session.EventFilter{Sorts: []run.Sort{run.EventMessage.By("user")}}, []int64{1}},
		{session.EventFilter{Sorts: []run.Sort{run.EventMessage.By("assistant"), run.Sort(run.EventAnswer)}}, []int64{6, 10, 11}},
		{session.EventFilter{Kinds: []run.EventKind{run.EventCall}, Run: all[0].Run}, []int64{4, 5}},
		{session.EventFilter{Kinds: []run.EventKind{run.EventCall}, Sorts: []run.Sort{run.EventMessage.By("user")}}, []int64{1, 4, 5}},
		{session.EventFilter{Run: "run_other"}, nil},
		{session.EventFilter{Span: session.Span{From: all[11].At, Until: all[12].At.Add(time.Microsecond)}}, []int64{12, 13}},
		{session.EventFilter{Span: session.Span{From: all[12].At.Add(time.Nanosecond)}}, nil},
		{session.EventFilter{Span: session.Span{Until: all[0].At}}, nil},
	} {
		c.f.Limit = 20
		got, _, err := s.Events(t.Context(), "ten_1", id, c.f)
		must(t, err)
		var seqs []int64
		for i := range got {
			seqs = append(seqs, got[i].Seq)
		}
		if !slices.Equal(seqs, c.want) {
			t.Errorf("%+v chooses %v, want %v", c.f, seqs, c.want)
		}
	}
	total, err := s.Total(t.Context(), "ten_1", id)
	must(t, err)
	if total.Usage.Input != 20 || total.Active <= 0 {
		t.Errorf("the turns come to %+v", total)
	}
	if total, err = s.Total(t.Context(), "ten_2", session.NewID()); err != nil || total.Usage.Input != 0 {
		t.Errorf("%+v, %v", total, err)
	}
}

// confirmed has calls that wait: they are answered one by one, and a turn begins with the
// last answer.
func (k talk) confirmed() {
	k.Helper()
	ctx, t := k.Context(), k.T
	n, err := k.begin("ten_1", k.now(), said("Write"))
	must(t, err)
	n.answered(call("c1", "write"), call("c2", "write"))
	n.add(run.Entry{Ended: &run.End{Status: run.RequiresAction}})
	v := k.now()
	calls, err := k.s.Calls(ctx, "ten_1", v.ID)
	must(t, err)
	if len(calls) != 2 || v.Waits != 2 || calls[0].Call != "c1" || !calls[0].Approve || calls[0].Approved {
		t.Fatalf("%+v %+v", v, calls)
	}
	_, err = k.begin("ten_1", v, said("Hi"))
	refused(t, err, fault.Conflict)
	yes := run.Answer{Of: calls[0].Of, Call: "c1", Tool: "write", Decision: &run.Decision{Approve: true, Key: "key_2"}}
	must(t, k.s.Answer(ctx, v, []run.Answer{yes}, false))
	refused(t, k.s.Answer(ctx, v, []run.Answer{yes}, false), fault.Conflict)
	v = k.now()
	if calls, err = k.s.Calls(ctx, "ten_1", v.ID); err != nil || v.Waits != 1 || len(calls) != 2 || !calls[0].Approved {
		t.Fatalf("%+v %+v, %v", v, calls, err)
	}
	no := run.Answer{Of: calls[1].Of, Call: "c2", Tool: "write", Decision: &run.Decision{Key: "key_2"}, Result: &model.Result{CallID: "c2", Failed: true}}
	next, err := k.begin("ten_1", v, run.Request{Turn: &run.Turn{Answers: []run.Answer{no}}, Approved: []run.Approved{{Call: "c1", Event: yes.Of}}})
	must(t, err)
	_, err = k.begin("ten_1", v, run.Request{Turn: &run.Turn{Answers: []run.Answer{no}}})
	refused(t, err, fault.Conflict)
	next.add(run.Entry{Calling: &run.Calling{Call: "c1"}})
	next.add(run.Entry{Called: &run.Called{Call: "c1", Result: *result("c1").Result}})
	next.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	v = k.now()
	if calls, err = k.s.Calls(ctx, "ten_1", v.ID); err != nil || v.Waits != 0 || len(calls) != 0 {
		t.Errorf("%+v %+v, %v", v, calls, err)
	}
	n, err = k.begin("ten_1", v, said("Write"))
	must(t, err)
	n.answered(call("c1", "write"))
	n.add(run.Entry{Ended: &run.End{Status: run.RequiresAction}})
	calls, err = k.s.Calls(ctx, "ten_1", v.ID)
	must(t, err)
	must(t, k.s.Answer(ctx, k.now(), []run.Answer{{Of: calls[0].Of, Call: "c1", Result: result("c1").Result}}, true))
	if v = k.now(); v.Waits != 0 || v.Run != "" {
		t.Errorf("interrupted: %+v", v)
	}
	for within, late := range map[time.Duration]int{time.Hour: 0, time.Nanosecond: 1} {
		q := said("Write")
		q.Turn.Within = within
		n, err = k.begin("ten_1", k.now(), q)
		must(t, err)
		n.answered(call("c1", "write"), call("c2", "write"))
		n.add(run.Entry{Ended: &run.End{Status: run.RequiresAction}})
		found, err := k.s.Expired(ctx, 9)
		must(t, err)
		if v = k.now(); len(found) != late || v.Until.IsZero() {
			t.Errorf("within %s: %+v; expired: %+v", within, v, found)
		}
		calls, err = k.s.Calls(ctx, "ten_1", v.ID)
		must(t, err)
		must(t, k.s.Answer(ctx, v, session.Expire(calls, time.Now()), true))
		refused(t, k.s.Answer(ctx, v, session.Expire(calls, time.Now()), true), fault.Conflict)
		if v = k.now(); v.Waits != 0 || !v.Until.IsZero() {
			t.Errorf("expired: %+v", v)
		}
		last, err := k.s.After(ctx, "ten_1", v.ID, v.Events-1, 1)
		must(t, err)
		if last[0].Status == nil || last[0].Status.End != run.Expired {
			t.Errorf("the last event is %+v", last[0])
		}
	}
}
