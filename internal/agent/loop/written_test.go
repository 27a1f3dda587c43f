package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// writer is a handler whose calls readers see while the model writes them.
type writer struct{}

func (writer) item(c *Call, s run.ItemStatus) *run.Item {
	return &run.Item{Status: s, Use: &run.ToolUse{CallID: c.Call.ID, Tool: c.Tool.Name, Input: json.RawMessage(c.Call.Arguments)}}
}

func (w writer) Show(c *Call) (*run.Item, error) {
	if c.Call.Arguments == `"bad"` {
		return nil, fmt.Errorf("bad arguments")
	}
	return w.item(c, run.ItemInProgress), nil
}

func (w writer) Do(_ context.Context, c *Call) (*Outcome, error) {
	return &Outcome{Result: result("", "done", false), Item: w.item(c, run.ItemCompleted)}, nil
}

// writes has the model say a word and make two calls at once, whose arguments take turns; the
// second time one that is refused.
func writes(q model.Request) ([]model.Delta, error) {
	results := 0
	for _, it := range q.Items {
		if it.Result != nil {
			results++
		}
	}
	out := []model.Delta{{Kind: model.Said, Index: 0, Text: "hm"}}
	begin := func(at int, id, arguments string) (begun, half, rest, ended model.Delta) {
		c := model.Call{ID: id, Name: "write", Arguments: arguments}
		return model.Delta{Kind: model.CallBegun, Index: at, Call: model.Call{ID: id, Name: "write"}}, model.Delta{Kind: model.CallArguments, Index: at, Text: arguments[:1]},
			model.Delta{Kind: model.CallArguments, Index: at, Text: arguments[1:]}, model.Delta{Kind: model.CallEnded, Index: at, Call: c}
	}
	end := []model.Delta{{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, {Kind: model.Stopped, Stop: model.StopToolCalls}}
	switch results {
	case 0:
		a1, a2, a3, a4 := begin(1, "a", `[1]`)
		b1, b2, b3, b4 := begin(2, "b", `[2]`)
		return append(append(out, a1, b1, a2, b2, a3, b3, a4, b4), end...), nil
	case 2:
		c1, c2, c3, c4 := begin(1, "c", `"bad"`)
		return append(append(out, c1, c2, c3, c4), end...), nil
	}
	return say("done"), nil
}

func (k *kit) writing(t *testing.T, store run.Store) *Loop {
	t.Helper()
	l := New(Config{
		Store: store, Models: k.models, Handlers: map[string]Handler{"write": writer{}}, Events: k.bus.RunEvents(storetest.Box(t)),
		Log: slog.New(slog.DiscardHandler), Holder: "a",
	})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

// told is what readers are told of the calls of a run, an event a line.
func told(t *testing.T, events []run.Event) string {
	t.Helper()
	var out []string
	var p run.Published
	for i, e := range events {
		if !p.Apply(&e) {
			t.Errorf("event %d %s cannot follow those before it", i, show(e))
		}
		switch {
		case e.Began != nil && e.Began.Item.Use != nil:
			out = append(out, fmt.Sprintf("%d begun %s", e.Began.Index, e.Began.Item.Use.Input))
		case e.Delta != nil && e.Delta.Kind == model.CallArguments:
			out = append(out, fmt.Sprintf("%d %s", e.Delta.Index, e.Delta.Text))
		case e.Called != nil:
			out = append(out, fmt.Sprintf("%d called %s", e.Called.Index, e.Called.Item.Use.Input))
		case e.Done != nil && e.Done.Item.Use != nil:
			out = append(out, fmt.Sprintf("%d %s", e.Done.Index, e.Done.Item.Status))
		}
	}
	return strings.Join(out, "\n")
}

// TestWritten: readers see calls of the server's as the model writes them, one after the
// other, then that they are made, and their ends; also after the death of a process.
func TestWritten(t *testing.T) {
	q := request("1")
	q.Tools = []run.Tool{{Tool: model.Tool{Name: "write"}, Handler: "write", Shown: true, Idempotent: true}}
	k := newKit(t, models{"m": script(writes)})
	id, done := k.begin(t, k.writing(t, k.store), q)
	<-done
	want := "1 begun \n1 [\n1 1]\n2 begun \n2 [\n2 2]\n1 called [1]\n2 called [2]\n" // and their ends, in any order
	events := k.events(t, id)
	if got := told(t, events); !strings.HasPrefix(got, want) || !strings.Contains(got, "1 completed") || !strings.Contains(got, "2 completed") ||
		!strings.HasSuffix(got, "4 begun \n4 \"\n4 bad\"\n4 failed") {
		t.Errorf("readers are told\n%s", got)
	}
	for n := range 10 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("record %d, after %t", n, after), func(t *testing.T) {
				k := newKit(t, models{"m": script(writes)})
				id, done := k.begin(t, k.writing(t, &dying{Store: k.store, left: n, after: after, dead: make(chan struct{})}), q)
				<-done
				k.writing(t, k.store)
				s := k.ended(t, id)
				if s.End.Status != run.Completed || s.Calls != 3 {
					t.Errorf("%+v after %d calls", s.End, s.Calls)
				}
				completed := 0
				for _, it := range s.Output {
					if it.Use != nil && it.Status == run.ItemCompleted {
						completed++
					}
					if it.Status == run.ItemInProgress {
						t.Errorf("item %s is in progress", show(it))
					}
				}
				var p run.Published
				for _, e := range k.events(t, id) {
					p.Apply(&e)
				}
				if told(t, k.events(t, id)); completed != 2 || len(p.Missing(s)) > 0 {
					t.Errorf("%d calls completed; readers were not told of %s", completed, show(p.Missing(s)))
				}
			})
		}
	}
}
