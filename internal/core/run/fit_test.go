package run

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
)

// long is a conversation of n tool calls, whose results have about 1,000 tokens each.
func long(n int) (items []model.Item) {
	items = append(items, model.Text(model.User, "first"))
	for range n {
		items = append(items,
			model.Item{Reasoning: &model.Thought{}}, model.Item{Call: &model.Call{ID: "c", Name: "server"}},
			model.Item{Result: &model.Result{CallID: "c", Parts: []model.Part{{Kind: model.PartText, Text: strings.Repeat("x", 4000)}}}})
	}
	return items
}

func TestFit(t *testing.T) {
	for name, test := range map[string]struct {
		calls, context int
		truncate       bool
		view           View
		fails          bool
	}{
		"all":                    {calls: 3, context: 10_000, truncate: true},
		"no bound known":         {calls: 100, truncate: true},
		"the provider decides":   {calls: 100, context: 10_000},
		"shortened":              {calls: 20, context: 10_000, truncate: true, view: View{Shortened: 15}},
		"skipped":                {calls: 400, context: 4000, truncate: true, view: View{Skipped: 1 + 3*370, Shortened: 29}},
		"nothing that is enough": {calls: 2, context: 100, truncate: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, Request{Input: long(test.calls), Truncate: test.truncate})
			spec := model.Spec{Context: test.context, MaxOutput: 1000}
			v, ok := l.state.fit(&spec, false)
			if ok == test.fails {
				t.Fatalf("fits: %t, %+v", ok, v)
			}
			if !ok {
				return
			}
			if (v.Skipped > 0) != (test.view.Skipped > 0) || (v.Shortened > 0) != (test.view.Shortened > 0) {
				t.Errorf("the view is %+v, want about %+v", v, test.view)
			}
			items := l.state.visible(v)
			if items[0].Message == nil || items[0].Message.Parts[0].Text != "first" {
				t.Error("the user's message is omitted")
			}
			open := 0
			for _, it := range items {
				switch {
				case it.Call != nil:
					open++
				case it.Result != nil:
					open--
				}
				if open < 0 {
					t.Fatal("a result has lost its call")
				}
			}
			if test.context > 0 && test.truncate && l.state.estimate(v) > int64(test.context) {
				t.Errorf("%d tokens for a context of %d", l.state.estimate(v), test.context)
			}
		})
	}
}

// TestFitAfterALongMessage: a message that no model reads does not keep the next ones from it.
func TestFitAfterALongMessage(t *testing.T) {
	long := model.Text(model.User, strings.Repeat("x", 100_000))
	for name, before := range map[string][]model.Item{
		"first":               {long},
		"after others":        {model.Text(model.User, "hello"), model.Text(model.Assistant, "hello"), long},
		"before a small talk": {long, model.Text(model.User, "hello"), model.Text(model.Assistant, "hello")},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, Request{Input: append(before, model.Text(model.User, "short")), Truncate: true})
			v, ok := l.state.fit(&model.Spec{Context: 10_000, MaxOutput: 1000}, false)
			if !ok {
				t.Fatal("the next message does not fit")
			}
			items := l.state.visible(v)
			if last := items[len(items)-1]; !byUser(&items[0]) || last.Message.Parts[0].Text != "short" {
				t.Errorf("the model is shown %+v", items)
			}
			for _, it := range items {
				if len(it.Message.Parts[0].Text) > 1000 {
					t.Error("the long message is shown")
				}
			}
		})
	}
}
