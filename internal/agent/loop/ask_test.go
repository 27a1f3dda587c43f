package loop

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// TestItemsInOrder: what readers see of an answer is at the places that it has on record,
// also when a thought has no text, and when blocks begin in another order than theirs.
func TestItemsInOrder(t *testing.T) {
	begun := model.Call{ID: "c", Name: "mine"}
	whole := model.Call{ID: "c", Name: "mine", Arguments: "{}"}
	deltas := []model.Delta{
		{Kind: model.ThoughtEnded, Index: 0, State: model.State{Origin: "o", ID: "1", Data: "sealed"}},
		{Kind: model.CallBegun, Index: 2, Call: begun},
		{Kind: model.CallArguments, Index: 2, Text: "{}"},
		{Kind: model.Said, Index: 1, Text: "late"},
		{Kind: model.CallEnded, Index: 2, Call: whole},
		{Kind: model.Stopped, Stop: model.StopToolCalls},
	}
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return deltas, nil })})
	q := request("1")
	q.Tools = append(q.Tools, run.Tool{Tool: model.Tool{Name: "mine"}})
	id, done := k.begin(t, k.loop(t, "a", k.store), q)
	<-done
	s := k.state(t, id)
	if s.End == nil || s.End.Status != run.RequiresAction || len(s.Output) != 3 {
		t.Fatalf("%+v, %s", s.End, show(s.Output))
	}
	begunAs := map[int]string{}
	for _, e := range k.events(t, id) {
		switch {
		case e.Began != nil:
			begunAs[e.Began.Index] = e.Began.Item.ID
		case e.Done != nil && e.Done.Item.ID != begunAs[e.Done.Index]:
			t.Errorf("item %d began as %s and is done as %s", e.Done.Index, begunAs[e.Done.Index], e.Done.Item.ID)
		}
	}
	for i, it := range s.Output {
		if begunAs[i] != it.ID {
			t.Errorf("readers saw %s at %d, and the record has %s", begunAs[i], i, it.ID)
		}
	}
}

// TestCallsOneAfterTheOther: clients read one call after the other, also when a provider
// lets their arguments take turns.
func TestCallsOneAfterTheOther(t *testing.T) {
	var deltas []model.Delta
	each := func(kind model.DeltaKind, text string) {
		for i, id := range []string{"c1", "c2", "c3"} {
			call := model.Call{ID: id, Name: "mine"}
			if kind == model.CallEnded {
				call.Arguments = "{}"
			}
			deltas = append(deltas, model.Delta{Kind: kind, Index: i, Call: call, Text: text})
		}
	}
	each(model.CallBegun, "")
	each(model.CallArguments, "{")
	each(model.CallArguments, "}")
	each(model.CallEnded, "")
	deltas = append(deltas, model.Delta{Kind: model.Said, Index: 3, Text: "said"}, model.Delta{Kind: model.Stopped, Stop: model.StopToolCalls})
	k := newKit(t, models{"m": script(func(model.Request) ([]model.Delta, error) { return deltas, nil })})
	q := request("1")
	q.Tools = append(q.Tools, run.Tool{Tool: model.Tool{Name: "mine"}})
	id, done := k.begin(t, k.loop(t, "a", k.store), q)
	<-done
	var order []int
	for _, e := range k.events(t, id) {
		switch {
		case e.Began != nil:
			order = append(order, e.Began.Index)
		case e.Delta != nil:
			order = append(order, e.Delta.Index)
		}
	}
	if want := []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3}; !slices.Equal(order, want) {
		t.Errorf("items in the order %v, want %v", order, want)
	}
}
