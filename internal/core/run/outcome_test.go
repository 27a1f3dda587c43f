package run

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

// outcome is of a run that is checked, and then graded.
func outcome(iterations int) *Outcome {
	return &Outcome{ID: "outc_1", Description: "do", Rubric: "well", Check: &OutcomeCheck{Tool: Tool{Tool: model.Tool{Name: "check"}, Handler: "h"}, Arguments: "{}"}, Iterations: iterations}
}

// events applies an entry, and returns the kinds of events that it makes.
func (l *log) events(e Entry) string {
	l.t.Helper()
	e.Seq, e.At = int64(len(l.entries)+1), l.at
	left, err := l.state.Record(&Run{ID: l.state.ID, Tenant: "ten_1"}, &e)
	if err != nil {
		l.t.Fatal(err)
	}
	l.entries = append(l.entries, e)
	if e.Checked != nil && (len(left.Charges) != 1 || len(left.Rows) != 1 || left.Rows[0].Metadata["outcome"] != "outc_1" || left.Rows[0].Metadata["model"] != "g") {
		l.t.Errorf("a grader leaves %+v", left)
	}
	var kinds []string
	for i := range left.Events {
		kinds = append(kinds, string(left.Events[i].Kind))
	}
	return strings.Join(kinds, " ")
}

func (l *log) evaluates(iteration int) {
	l.t.Helper()
	n := l.next()
	if n.Evaluate == nil || n.Evaluate.Iteration != iteration {
		l.t.Fatalf("next is %+v", n)
	}
	if kinds := l.events(Entry{Evaluating: n.Evaluate}); kinds != string(EventEvaluating) {
		l.t.Errorf("told %s", kinds)
	}
}

// checked makes the check of the evaluation under way.
func (l *log) checked(failed bool) (kinds string) {
	l.t.Helper()
	n := l.next()
	if len(n.Calls) != 1 || n.Calls[0].Call.Name != "check" || n.Calls[0].Number >= 0 {
		l.t.Fatalf("next is %+v", n)
	}
	id := n.Calls[0].Call.ID
	l.add(Entry{Calling: &Calling{Call: id}})
	return l.events(Entry{Called: &Called{Call: id, Result: model.Result{CallID: id, Failed: failed}, Used: []Use{{Kind: "tool", Name: "sandbox", Calls: 1}}}})
}

func (l *log) graded(v Verdict, say bool) string {
	l.t.Helper()
	if n := l.next(); !n.Check {
		l.t.Fatalf("next is %+v", n)
	}
	c := &Checked{Evaluation: &Evaluation{Result: v, Explanation: "because"}, Asked: "g", Usage: model.Usage{Input: 7, Output: 3}, Cost: model.Cost{Total: 5}}
	if say {
		c.Say = new(model.Text(model.User, "continue"))
	}
	return l.events(Entry{Checked: c})
}

// again reads the log from its beginning, and compares.
func (l *log) again() {
	l.t.Helper()
	s := NewState(l.state.ID)
	for i := range l.entries {
		if err := s.Apply(&l.entries[i]); err != nil {
			l.t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(s, l.state) {
		l.t.Errorf("read again it is\n%+v\nand was\n%+v", s, l.state)
	}
}

// TestOutcome: a check that fails and a grader that wants more have the run go on, and the log
// alone says all of it. A grader without a verdict is asked again.
func TestOutcome(t *testing.T) {
	l := begin(t, Request{Outcome: outcome(3), Turn: &Turn{Session: "sess_1"}})
	l.says("one", model.StopEnd)
	l.evaluates(0)
	if kinds := l.checked(true); kinds != "" {
		t.Errorf("told %s", kinds)
	}
	l.again()
	if kinds := l.graded(NeedsRevision, true); kinds != string(EventEvaluated) {
		t.Errorf("told %s", kinds)
	}
	l.says("two", model.StopEnd)
	l.evaluates(1)
	if kinds := l.checked(false); kinds != string(EventGrading) {
		t.Errorf("told %s", kinds)
	}
	if kinds := l.events(Entry{Checked: &Checked{Again: l.at.Add(60), Asked: "g", Usage: model.Usage{Input: 7, Output: 3}, Cost: model.Cost{Total: 5}}}); kinds != string(EventGrading) {
		t.Errorf("told %s", kinds)
	}
	if n := l.next(); !n.Wait.Equal(l.at.Add(60)) {
		t.Errorf("next is %+v", n)
	}
	l.at = l.at.Add(60)
	l.graded(Satisfied, false)
	bad := Entry{Seq: l.state.Seq + 1, At: l.at, Evaluating: &Evaluating{2}}
	if err := l.state.Apply(&bad); err == nil {
		t.Error("an outcome is evaluated that was reached")
	}
	l.ends(Completed, Done)
	if e := l.state.Evaluation(); e.Iteration != 1 || e.Result != Satisfied || e.Begun == 0 || e.Explanation != "because" {
		t.Errorf("%+v", e)
	}
	if s := l.state; s.Usage.Input != 2*100+3*7 || s.Spent() != 2*5+3*5 || s.Calls != 2 || s.Invoked["sandbox"] != 2 {
		t.Errorf("%+v, %s, %d calls", s.Usage, s.Spent(), s.Calls)
	}
	for _, it := range l.state.Conversation {
		if it.Result != nil || it.Call != nil {
			t.Errorf("the check is a part of the conversation: %+v", it)
		}
	}
	l.again()
}

// TestOutcomeUnmet: after the last evaluation the model has one more answer, which is not
// evaluated.
func TestOutcomeUnmet(t *testing.T) {
	l := begin(t, Request{Outcome: &Outcome{ID: "outc_1", Rubric: "well", Iterations: 1}, Skills: []Skill{{Name: "x"}}, Turn: &Turn{Session: "sess_1"}})
	l.says("one", model.StopEnd)
	if n := l.next(); !n.Check || n.Evaluate == nil {
		t.Fatalf("next is %+v: skills have their say before an evaluation", n)
	}
	l.evaluates(0)
	l.graded(Unmet, true)
	l.says("sorry", model.StopEnd)
	if n := l.next(); n.Check || n.Evaluate != nil {
		t.Errorf("next is %+v", n)
	}
	l.ends(Incomplete, MaxIterations)
}

// TestOutcomeCut: a run that ends before its outcome is reached says so, once, and one that waits
// for the client leaves it to the next.
func TestOutcomeCut(t *testing.T) {
	for what, c := range map[string]struct {
		end  End
		want string
	}{
		"interrupted": {End{Status: Cancelled}, "interrupt outcome_evaluation_end usage status"},
		"a limit":     {End{Status: Incomplete, Reason: SessionBudget, Message: "used up"}, "outcome_evaluation_end error usage status"},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", begun ", begun), func(t *testing.T) {
				l := begin(t, Request{Outcome: outcome(3), Turn: &Turn{Session: "sess_1"}})
				l.says("one", model.StopEnd)
				if begun {
					l.evaluates(0)
					l.add(Entry{Calling: &Calling{Call: l.next().Calls[0].Call.ID}})
				}
				if kinds := l.events(Entry{Ended: &c.end}); kinds != c.want {
					t.Errorf("told %s, want %s", kinds, c.want)
				}
				if e := l.state.Evaluation(); e.Result.Open() || (e.Begun > 0) != begun || e.Explanation == "" {
					t.Errorf("%+v", e)
				}
				l.again()
			})
		}
	}
	l := begin(t, Request{Outcome: &Outcome{ID: "outc_1", Rubric: "well", Iterations: 3, Of: 4, Evaluated: 2}, Turn: &Turn{Session: "sess_1", Until: 9}})
	l.calls("client")
	e := Entry{Seq: l.state.Seq + 1, At: l.at, Ended: l.next().End}
	left, err := l.state.Record(&Run{ID: l.state.ID}, &e)
	if err != nil {
		t.Fatal(err)
	}
	if of := left.Events[len(left.Events)-1].Status.Outcome; of == nil || of.Of != 4 || of.Evaluated != 2 {
		t.Errorf("it leaves %+v", of)
	}
}

// TestOutcomeBudget: a grader is not asked where nothing is left, and its answer is bounded by
// what is.
func TestOutcomeBudget(t *testing.T) {
	l := begin(t, Request{Outcome: &Outcome{ID: "outc_1", Rubric: "well", Iterations: 3}, Turn: &Turn{Session: "sess_1"}, Limits: Limits{Session: Left{Tokens: new(int64(110))}}})
	l.says("one", model.StopEnd)
	l.evaluates(0)
	l.ends(Incomplete, SessionBudget)
	l = begin(t, Request{Outcome: &Outcome{ID: "outc_1", Rubric: "well", Iterations: 3}, Limits: Limits{Session: Left{Tokens: new(int64(150))}, OutputTokens: 1000}})
	l.says("one", model.StopEnd)
	if n := l.state.Bound(4096); n != 40 {
		t.Errorf("an answer may have %d tokens", n)
	}
}
