package run

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

// TestNothingToCompact: a conversation that the provider refuses for its length is not sent again
// where nothing of it can be summarized.
func TestNothingToCompact(t *testing.T) {
	l := begin(t, Request{Models: []string{"a"}, Compact: &Compact{}})
	l.failed(model.ContextTooLong, 0)
	l.ends(Failed, ContextLength)
}

// TestCompactsNoOpenCalls: a request that brings results of the client does not have the calls
// summarized that they belong to, as providers take no result without its call.
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
