package run

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

// TestNothingToCompact checks that a run does not resend a conversation that the provider rejected
// for its length if no part of it can be summarized.
func TestNothingToCompact(t *testing.T) {
	l := begin(t, Request{Models: []string{"a"}, Compact: &Compact{}})
	l.failed(model.ContextTooLong, 0)
	l.ends(Failed, ContextLength)
}

// TestOutputLimitIsOfAnswers checks that summaries and interrupted answers do not count toward the
// run's output limit, but do count in its usage.
func TestOutputLimitIsOfAnswers(t *testing.T) {
	before := []model.Item{model.Text(model.User, "question"), model.Text(model.Assistant, "answer")}
	l := begin(t, Request{
		Models: []string{"a"}, Input: append(before[:2:2], model.Text(model.User, "again")), Before: 2, Compact: &Compact{At: 1}, Limits: Limits{OutputTokens: 100},
	})
	c := l.next().Compact
	if c == nil {
		t.Fatalf("next is %+v", l.next())
	}
	l.add(Entry{Compacted: &Compacted{Items: c.Items, Summary: "in short", Model: c.Model, Usage: model.Usage{Output: 500}}})
	l.asked()
	l.add(Entry{Failed: &ModelFailed{Failure: model.Transient, Message: "it broke off", Again: l.at, Usage: model.Usage{Output: 90}}})
	l.asked()
	if q := l.state.ModelRequest(); q.MaxOutputTokens != 100 || l.state.Usage.Output != 590 {
		t.Errorf("the answer may have %d tokens, and the run used %+v", q.MaxOutputTokens, l.state.Usage)
	}
}

// TestCompactsNoOpenCalls checks that a request with results from the client keeps their calls
// out of the summary, because providers reject a result without its call.
func TestCompactsNoOpenCalls(t *testing.T) {
	before := []model.Item{
		model.Text(model.User, "question"), model.Text(model.Assistant, "wait"), {Call: &model.Call{ID: "c0", Name: "client", Arguments: "{}"}},
	}
	for _, more := range []model.Item{{Result: &model.Result{CallID: "c0"}}, model.Text(model.User, "well?")} {
		l := begin(t, Request{Input: append(before[:len(before):len(before)], more), Before: len(before), Compact: &Compact{At: 1}})
		if n := l.next(); (n.Compact != nil) != (more.Result == nil) {
			t.Errorf("with a result %t: next is %+v", more.Result != nil, n)
		}
	}
}
