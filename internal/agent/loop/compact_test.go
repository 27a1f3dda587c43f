package loop

import (
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// talker is a model that calls a tool with long arguments some times, and summarizes.
type talker struct {
	mu        sync.Mutex
	calls     int // still to make
	refuses   bool
	summaries []string // what it was shown to summarize
	last      []model.Item
}

func (m *talker) answer(q model.Request) ([]model.Delta, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(q.Instructions, "You summarize") {
		m.summaries = append(m.summaries, model.Joined(q.Items[0].Message.Parts))
		if m.refuses {
			return nil, model.Errorf(model.Rejected, "no summaries")
		}
		return say("in short: the key is 42"), nil
	}
	m.last = q.Items
	if m.calls--; m.calls >= 0 {
		return ask("add", strings.Repeat("x", 1000)), nil
	}
	return say("done"), nil
}

// TestCompaction: a conversation that grows beyond its bound is summarized between steps. The model
// goes on with the summary, the user's question and its last call; the log keeps everything.
func TestCompaction(t *testing.T) {
	m := &talker{calls: 6}
	k := newKit(t, models{"m": script(m.answer)})
	q := request("what is the key?")
	q.Compact = &run.Compact{At: 1500}
	id, done := k.begin(t, k.loop(t, "a", k.store), q)
	<-done
	s := k.state(t, id)
	if s.End == nil || s.End.Status != run.Completed || len(s.Conversation) != 1+2*6+1 {
		t.Fatalf("%+v with %d items", s.End, len(s.Conversation))
	}
	if len(m.summaries) == 0 || len(m.summaries) > 3 || !strings.Contains(m.summaries[0], "user: what is the key?") || !strings.Contains(m.summaries[0], "call of the tool add: xxx") {
		t.Fatalf("%d summaries of %q", len(m.summaries), m.summaries)
	}
	if len(m.summaries) > 1 && !strings.Contains(m.summaries[1], "summary of what came before: in short: the key is 42") {
		t.Errorf("the next summary is of %q", m.summaries[1])
	}
	shown := m.last
	if len(shown) > 10 || !strings.HasSuffix(model.Joined(shown[0].Message.Parts), "in short: the key is 42") || model.Joined(shown[1].Message.Parts) != "what is the key?" || shown[2].Call == nil || shown[len(shown)-1].Result == nil {
		t.Errorf("the model was shown %d items: %s", len(shown), show(shown))
	}
	if want := int64(15 * (7 + len(m.summaries))); s.Usage.Input+s.Usage.Output != want {
		t.Errorf("the run used %+v, want %d tokens with those of %d summaries", s.Usage, want, len(m.summaries))
	}
	if again := k.state(t, id); show(again.Remembered()) != show(s.Remembered()) || len(s.Remembered()) >= len(s.Conversation) {
		t.Error("what is remembered does not follow from the log")
	}
}

// TestCompactionFails: without a summary the run goes on, and leaves out what is too long.
func TestCompactionFails(t *testing.T) {
	m := &talker{calls: 6, refuses: true}
	k := newKit(t, models{"m": script(m.answer)})
	q := request("what is the key?")
	q.Compact, q.Truncate = &run.Compact{At: 1500}, true
	id, done := k.begin(t, k.loop(t, "a", k.store), q)
	<-done
	if s := k.state(t, id); s.End == nil || s.End.Status != run.Completed || len(m.summaries) == 0 {
		t.Errorf("%+v after %d summaries", s.End, len(m.summaries))
	}
}
