package loop

import (
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
