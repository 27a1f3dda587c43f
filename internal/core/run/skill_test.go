package run

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

// TestChecked: a run that would end is checked, goes on with what a check says, and is checked
// again; the log alone says all of it.
func TestChecked(t *testing.T) {
	l := begin(t, Request{Skills: []Skill{{Name: "reflection-loop"}}, Turn: &Turn{Session: "sess_1"}})
	l.asked()
	l.add(Entry{Answered: &Answered{Answer: model.Answer{Items: []model.Item{model.Text(model.Assistant, "bad")}, Stop: model.StopEnd}}})
	if n := l.next(); !n.Check || n.End == nil || n.End.Status != Completed {
		t.Fatalf("%+v", n)
	}
	say := model.Text(model.User, "improve it")
	r := &Run{ID: l.state.ID, Tenant: "ten_1"}
	e := Entry{Seq: l.state.Seq + 1, At: l.at, Checked: &Checked{Kind: EventReview, Note: Note{Skill: "reflection-loop", Data: []byte(`{}`)}, Say: &say, Asked: "a", Usage: model.Usage{Input: 7, Output: 3}, Cost: model.Cost{Total: 5}}}
	left, err := l.state.Record(r, &e)
	if err != nil {
		t.Fatal(err)
	}
	l.entries = append(l.entries, e)
	if len(left.Charges) != 1 || left.Charges[0].Cost != 5 || left.Charges[0].Tokens.Input != 7 || len(left.Rows) != 1 || left.Rows[0].Metadata["skill"] != "reflection-loop" {
		t.Errorf("it leaves %+v", left)
	}
	if len(left.Events) != 1 || left.Events[0].Kind != EventReview || left.Events[0].Item == nil || left.Events[0].Begins() || !left.Events[0].Talk() {
		t.Errorf("readers are told %+v", left.Events)
	}
	if s := l.state; s.Usage.Input != 7 || s.Spent() != 5 {
		t.Errorf("%+v costs %s", s.Usage, s.Spent())
	}
	l.asked()
	if items := l.state.ModelRequest().Items; items[len(items)-1].Message.Parts[0].Text != "improve it" {
		t.Errorf("the model is asked %+v", items)
	}
	l.add(Entry{Answered: &Answered{Answer: model.Answer{Items: []model.Item{model.Text(model.Assistant, "good")}, Stop: model.StopEnd}}})
	if n := l.next(); !n.Check {
		t.Fatalf("%+v", n)
	}
	l.add(Entry{Checked: &Checked{Kind: EventReview, Note: Note{Skill: "reflection-loop", Data: []byte(`{}`)}}})
	if n := l.next(); n.Check || n.End == nil || n.End.Status != Completed {
		t.Fatalf("%+v", n)
	}
	again := NewState(l.state.ID)
	for i := range l.entries {
		if err := again.Apply(&l.entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(again.Checks) != 2 || again.checks() || len(again.Conversation) != len(l.state.Conversation) {
		t.Errorf("read again it is %+v", again)
	}
	bad := Entry{Seq: l.state.Seq + 1, At: l.at, Checked: &Checked{}}
	if err := l.state.Apply(&bad); err == nil {
		t.Error("a run is checked that nothing is left to say of")
	}
}

// TestCheckEnds: a check may say how the run ends.
func TestCheckEnds(t *testing.T) {
	l := begin(t, Request{Skills: []Skill{{Name: "structured-planning"}}})
	l.asked()
	l.add(Entry{Answered: &Answered{Answer: model.Answer{Items: []model.Item{model.Text(model.Assistant, "no")}, Stop: model.StopEnd}}})
	l.add(Entry{Checked: &Checked{Kind: EventReminder, End: &End{Status: Incomplete, Reason: OpenSteps}}})
	if n := l.next(); n.Check || n.End == nil || n.End.Reason != OpenSteps {
		t.Fatalf("%+v", n)
	}
}
