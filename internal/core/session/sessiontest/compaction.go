package sessiontest

import (
	"reflect"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// compacting is what the turn would have summarized next.
func (n *turn) compacting() *run.Compacting {
	n.Helper()
	next := n.state.Next(time.Now(), run.Known{Spec: func(string) model.Spec { return model.Spec{} }})
	if next.Compact == nil {
		n.Fatalf("nothing is to be summarized: %+v", next)
	}
	return next.Compact
}

// summarized records a summary.
func (n *turn) summarized(text string) model.Item {
	n.Helper()
	c := n.compacting()
	entry := &run.Compacted{Items: c.Items, Upto: c.Upto, Summary: text, Model: "m"}
	n.add(run.Entry{Compacted: entry})
	return entry.Item()
}

// completed ends a turn, whose log also those can read who do not know what came before.
func (n *turn) completed() {
	n.Helper()
	n.add(run.Entry{Ended: &run.End{Status: run.Completed}})
	entries, err := n.runs.Log(n.Context(), n.run.ID)
	must(n.T, err)
	apart := run.NewState(n.run.ID)
	apart.Apart = true
	for i := range entries {
		must(n.T, apart.Apply(&entries[i]))
	}
	if apart.Usage != n.state.Usage {
		n.Errorf("read apart it used %+v, want %+v", apart.Usage, n.state.Usage)
	}
}

// compaction has later turns begin with the last summary, and with what it does not stand for.
func compaction(t *testing.T, s session.Store, runs run.Store) {
	ctx, k := t.Context(), talk{t, s, runs, made("ten_1")}
	must(t, s.Create(ctx, k.v, 0))
	remembers := func(want ...model.Item) {
		t.Helper()
		v := k.now()
		after, err := s.Window(ctx, v.ID, v.Events)
		must(t, err)
		for _, from := range []int64{after, 0} { // a turn that has waited may know an earlier beginning
			if all, err := s.Conversation(ctx, &run.Turn{Session: string(v.ID), After: from, Until: v.Events}); err != nil || !reflect.DeepEqual(all, want) {
				t.Errorf("from %d on it is %+v, %v; want %+v", from, all, err, want)
			}
		}
	}
	turn := func(text string) *turn {
		t.Helper()
		q := said(text)
		q.Compact = &run.Compact{At: 1}
		v := k.now()
		var err error
		q.Turn.After, err = s.Window(ctx, v.ID, v.Events)
		must(t, err)
		n, err := k.begin("ten_1", v, q)
		must(t, err)
		return n
	}
	hello, again, third := model.Text(model.Assistant, "Hello"), model.Text(model.Assistant, "again"), model.Text(model.Assistant, "third")
	n := turn("Hi")
	n.answered(hello)
	n.completed()
	first := k.now().Events

	n = turn("Once more") // the turn begins with a summary of earlier ones
	summary := n.summarized("They said hello.")
	n.answered(again)
	n.completed()
	remembers(summary, model.Text(model.User, "Once more"), again)
	if all, err := s.Conversation(ctx, &run.Turn{Session: string(k.v.ID), Until: first}); err != nil || len(all) != 2 {
		t.Errorf("before the summary it is %+v, %v", all, err)
	}

	n = turn("Look") // and then all but the last answer with its results
	n.summarized("They said hello twice.")
	for _, id := range []string{"c1", "c2"} {
		n.answered(call(id, "look"))
		n.add(run.Entry{Calling: &run.Calling{Call: id}})
		n.add(run.Entry{Called: &run.Called{Call: id, Result: *result(id).Result}})
	}
	summary = n.summarized("They said hello twice, and look.")
	n.answered(third)
	n.completed()
	remembers(summary, call("c2", "look"), result("c2"), third)
	all, _, err := s.Events(ctx, "ten_1", k.v.ID, session.EventFilter{Page: agent.Page{Limit: 100}, Sorts: []run.Sort{run.Sort(run.EventMessage), run.EventMessage.By("assistant"), run.EventMessage.By("user")}})
	if err != nil || len(all) != 6 {
		t.Errorf("of the messages %d stay, %v", len(all), err)
	}
}
