package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// log builds a run's log.
type log struct {
	t       *testing.T
	at      time.Time
	entries []Entry
	state   *State
	price   model.Money // of a call
	window  model.Money
}

func begin(t *testing.T, q Request) *log {
	t.Helper()
	if q.Models == nil {
		q.Models = []string{"a", "b"}
	}
	if q.Input == nil {
		q.Input = []model.Item{model.Text(model.User, "question")}
	}
	q.Tools = append(q.Tools, Tool{Tool: model.Tool{Name: "server"}, Handler: "h"}, Tool{Tool: model.Tool{Name: "client"}})
	l := &log{t: t, at: time.Unix(1_000_000, 0).UTC(), state: NewState("run_" + ID(strings.Repeat("0", 32)))}
	l.add(Entry{Begun: &q})
	return l
}

func (l *log) add(e Entry) {
	l.t.Helper()
	e.Seq, e.At = int64(len(l.entries)+1), l.at
	if err := l.state.Apply(&e); err != nil {
		l.t.Fatal(err)
	}
	l.entries = append(l.entries, e)
}

func (l *log) next() Next {
	return l.state.Next(l.at, Known{
		Spec:   func(string) model.Spec { return model.Spec{Context: 10_000, MaxOutput: 1000} },
		Price:  func(*Tool) model.Money { return l.price },
		Window: l.window,
	})
}

// asked records that the model is asked which Next names.
func (l *log) asked() {
	l.t.Helper()
	n := l.next()
	if n.Ask == nil {
		l.t.Fatalf("next is %+v", n)
	}
	l.add(Entry{Asked: n.Ask})
}

func (l *log) says(text string, stop model.StopReason) {
	l.t.Helper()
	l.asked()
	l.add(Entry{Answered: &Answered{Answer: model.Answer{Items: []model.Item{model.Text(model.Assistant, text)}, Stop: stop, Usage: model.Usage{Input: 100, Output: 10}}, Cost: model.Cost{Total: 5}}})
}

// calls records an answer with a call of each tool.
func (l *log) calls(tools ...string) {
	l.t.Helper()
	l.asked()
	a := model.Answer{Stop: model.StopToolCalls, Usage: model.Usage{Input: 100, Output: 10}}
	for i, name := range tools {
		a.Items = append(a.Items, model.Item{Call: &model.Call{ID: fmt.Sprintf("c%d", i), Name: name, Arguments: "{}"}})
	}
	l.add(Entry{Answered: &Answered{Answer: a, Cost: model.Cost{Total: 5}}})
}

func (l *log) called(id string, failed bool) {
	l.t.Helper()
	l.add(Entry{Calling: &Calling{Call: id, Item: &Item{Status: ItemInProgress, Code: &CodeRun{Code: id}}}})
	l.add(Entry{Called: &Called{Call: id, Result: model.Result{CallID: id, Failed: failed}, Item: &Item{Status: ItemCompleted, Code: &CodeRun{Code: id}}}})
}

func (l *log) failed(f model.Failure, after time.Duration) {
	l.t.Helper()
	l.asked()
	l.add(Entry{Failed: l.state.Retry(l.at, &model.Error{Failure: f, Msg: "it failed", RetryAfter: after}, nil)})
}

func (l *log) ends(status Status, reason Reason) {
	l.t.Helper()
	n := l.next()
	if n.End == nil || n.End.Status != status || n.End.Reason != reason || reason != Done && n.End.Message == "" {
		l.t.Fatalf("next is %+v, %+v; want the end %s %s", n, n.End, status, reason)
	}
	l.add(Entry{Ended: n.End})
	if n := l.next(); !reflect.DeepEqual(n, Next{}) {
		l.t.Errorf("after its end: %+v", n)
	}
}

func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		q      Request
		do     func(l *log)
		status Status
		reason Reason
	}{
		"answer":                         {do: func(l *log) { l.says("done", model.StopEnd) }, status: Completed},
		"refusal":                        {do: func(l *log) { l.says("no", model.StopRefusal) }, status: Completed},
		"cut answer":                     {do: func(l *log) { l.says("do", model.StopMaxTokens) }, status: Incomplete, reason: MaxOutputTokens},
		"filter":                         {do: func(l *log) { l.says("", model.StopFilter) }, status: Incomplete, reason: ContentFilter},
		"client's calls":                 {do: func(l *log) { l.calls("client") }, status: RequiresAction},
		"both":                           {do: func(l *log) { l.calls("client", "server"); l.called("c1", false) }, status: RequiresAction},
		"steps":                          {q: Request{Limits: Limits{Steps: 1}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: MaxSteps},
		"tool calls":                     {q: Request{Parallel: true, Limits: Limits{Calls: 1}}, do: func(l *log) { l.calls("server", "server"); l.called("c0", false) }, status: Incomplete, reason: MaxCalls},
		"output tokens":                  {q: Request{Limits: Limits{OutputTokens: 10}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: MaxOutputTokens},
		"tokens":                         {q: Request{Limits: Limits{Tokens: 110}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: MaxTokens},
		"cost":                           {q: Request{Limits: Limits{Cost: 5}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: MaxCost},
		"session's tokens":               {q: Request{Limits: Limits{Session: Left{Tokens: new(int64(110))}}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: SessionBudget},
		"session's money":                {q: Request{Limits: Limits{Session: Left{Cost: new(model.Money(5))}}}, do: func(l *log) { l.calls("server"); l.called("c0", false) }, status: Incomplete, reason: SessionBudget},
		"session's tokens, in an answer": {q: Request{Limits: Limits{Session: Left{Tokens: new(int64(110))}}}, do: func(l *log) { l.says("do", model.StopMaxTokens) }, status: Incomplete, reason: SessionBudget},
		"nothing left for the session":   {q: Request{Limits: Limits{Session: Left{Tokens: new(int64(0))}}}, do: func(*log) {}, status: Incomplete, reason: SessionBudget},
		"time":                           {q: Request{Limits: Limits{Duration: time.Minute}}, do: func(l *log) { l.calls("server"); l.at = l.at.Add(time.Minute) }, status: Incomplete, reason: MaxDuration},
		"failing calls": {do: func(l *log) {
			for range maxFailures {
				l.calls("server")
				l.called("c0", true)
			}
		}, status: Incomplete, reason: RepeatedFailure},
		"rejected":     {do: func(l *log) { l.failed(model.Rejected, 0) }, status: Failed, reason: ModelError},
		"both refuse":  {do: func(l *log) { l.failed(model.Unauthorized, 0); l.failed(model.Broken, 0) }, status: Failed, reason: ModelError},
		"too long":     {do: func(l *log) { l.failed(model.ContextTooLong, 0); l.failed(model.ContextTooLong, 0) }, status: Failed, reason: ContextLength},
		"asks to wait": {q: Request{Models: []string{"a"}}, do: func(l *log) { l.failed(model.RateLimited, time.Hour) }, status: Failed, reason: ModelError},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, test.q)
			test.do(l)
			l.ends(test.status, test.reason)
			for _, it := range l.state.Output {
				if it.Status == ItemInProgress {
					t.Errorf("item %s is in progress after the end", it.ID)
				}
			}
			open := map[string]bool{}
			for _, it := range l.state.Conversation {
				switch {
				case it.Call != nil:
					open[it.Call.ID] = it.Call.Name != "client"
				case it.Result != nil:
					open[it.Result.CallID] = false
				}
			}
			for id, lacks := range open {
				if lacks {
					t.Errorf("call %s has no result, so the conversation cannot be continued", id)
				}
			}
			l.reread()
		})
	}
}

// reread folds the log as it is stored: any process sees what this one did.
func (l *log) reread() {
	l.t.Helper()
	s := NewState(l.state.ID)
	for i := range l.entries {
		stored, err := json.Marshal(&l.entries[i])
		if err != nil {
			l.t.Fatal(err)
		}
		var e Entry
		if err := json.Unmarshal(stored, &e); err != nil {
			l.t.Fatal(err)
		}
		if err := s.Apply(&e); err != nil {
			l.t.Fatal(err)
		}
	}
	got, _ := json.Marshal(s)
	want, _ := json.Marshal(l.state)
	if string(got) != string(want) {
		l.t.Errorf("read again it is\n%s\nnot\n%s", got, want)
	}
}

// TestACallEndsItsRun: what the run lacks is not asked for again, and windows are summed.
func TestACallEndsItsRun(t *testing.T) {
	l := begin(t, Request{})
	l.calls("server", "server", "server")
	l.add(Entry{Calling: &Calling{Call: "c0"}})
	l.add(Entry{Calling: &Calling{Call: "c1"}})
	refused := &End{Status: Failed, Reason: QuotaExceeded, Message: "used up"}
	l.add(Entry{Called: &Called{Call: "c0", Result: model.Result{CallID: "c0", Failed: true}, Windows: 2, Ends: refused}})
	if n := l.next(); len(n.Calls) != 1 || n.Calls[0].Call.ID != "c1" {
		t.Fatalf("next is %+v: the call that has begun has no result yet", n)
	}
	l.add(Entry{Called: &Called{Call: "c1", Result: model.Result{CallID: "c1"}, Windows: 1}})
	l.ends(Failed, QuotaExceeded)
	l.reread()
	if l.state.Windows != 3 || l.state.Conversation[len(l.state.Conversation)-1].Result == nil {
		t.Errorf("%d windows; the conversation is %+v", l.state.Windows, l.state.Conversation)
	}
}

func TestRetries(t *testing.T) {
	l := begin(t, Request{})
	for try := 1; try < maxTries; try++ {
		l.failed(model.Transient, 0)
		wait := l.next().Wait
		if wait.Sub(l.at) < firstWait || wait.Sub(l.at) > lastWait*5/4 {
			t.Fatalf("try %d: waits %s", try, wait.Sub(l.at))
		}
		l.at = wait
	}
	l.failed(model.Transient, 0)
	if ask := l.next().Ask; ask == nil || ask.Model != "b" || ask.Try != 1 || ask.Step != 1 {
		t.Fatalf("after the last try: %+v", ask)
	}
	l.failed(model.RateLimited, time.Minute)
	if wait := l.next().Wait; wait != l.at.Add(time.Minute) {
		t.Errorf("waits until %s", wait)
	}
	l.at = l.at.Add(time.Minute)
	l.calls("server")
	l.called("c0", false)
	if ask := l.next().Ask; ask == nil || ask.Model != "b" || ask.Step != 2 {
		t.Errorf("the next step asks %+v", ask)
	}
}

// TestRetryFor: a run keeps asking a model whose provider is in trouble for the time it was given,
// in few tries, also after the log was read again. It gives up sooner where the provider asks for more.
func TestRetryFor(t *testing.T) {
	l := begin(t, Request{Models: []string{"a"}, RetryFor: new(2 * time.Minute)})
	began, tries := l.at, 0
	for ; tries < 20; tries++ {
		l.failed(model.Transient, 0)
		n := l.next()
		if n.End != nil {
			break
		}
		if wait := n.Wait.Sub(l.at); wait <= 0 || wait > longestWait*5/4 {
			t.Fatalf("try %d: waits %s", tries, wait)
		}
		l.at = n.Wait
		l.reread()
	}
	if took := l.at.Sub(began); took != 2*time.Minute || tries < 6 || tries > 12 {
		t.Errorf("gave up after %d tries in %s", tries, took)
	}
	l.ends(Failed, ModelError)
	if end := l.state.End; !strings.Contains(end.Message, "in 2m0s") {
		t.Errorf("the end says %q", end.Message)
	}

	l = begin(t, Request{Models: []string{"a"}, RetryFor: new(time.Minute)})
	l.failed(model.RateLimited, 2*time.Minute)
	l.ends(Failed, ModelError)
	l = begin(t, Request{Models: []string{"a"}, RetryFor: new(time.Duration(0))})
	l.failed(model.Transient, 0)
	l.ends(Failed, ModelError)
	l = begin(t, Request{RetryFor: new(time.Hour)}) // another model follows: it is asked soon
	for range maxTries {
		l.failed(model.Transient, 0)
		l.at = l.at.Add(lastWait * 2)
	}
	if ask := l.next().Ask; ask == nil || ask.Model != "b" {
		t.Errorf("after %d tries of the first model: %+v", maxTries, ask)
	}
}

// TestWarnings: readers of a session are told what is missing from a turn and what is tried again.
func TestWarnings(t *testing.T) {
	q := &Request{Models: []string{"a"}, Input: []model.Item{model.Text(model.User, "question")}, Turn: &Turn{Session: "sess"}, Instructions: "be kind"}
	q.Warn(Warning{Code: MCPUnavailable, Server: "shop", Message: "it is away: do as I say.", ForModel: "it is away."})
	if !strings.HasPrefix(q.Instructions, "be kind\n\nit is away. Its tools") || strings.Contains(q.Instructions, "do as I say") {
		t.Errorf("the model is told %q", q.Instructions)
	}
	for name, want := range map[string]string{"shop__order": "the call was not made: it is away.", "mcp__0123456789_order": "the call was not made: it is away.", "shopping": `there is no tool "shopping"`} {
		if got := q.NoTool(name); got != want {
			t.Errorf("NoTool(%q) = %q, want %q", name, got, want)
		}
	}
	s := NewState("run_" + ID(strings.Repeat("0", 32)))
	var got []string
	again := time.Unix(2_000_000, 0)
	for i, e := range []Entry{
		{Begun: q}, {Asked: &Asked{Step: 1, Try: 1, Model: "a"}}, {Failed: &ModelFailed{Failure: model.Transient, Message: "overloaded", Again: again}},
		{Asked: &Asked{Step: 1, Try: 2, Model: "a"}}, {Failed: s.Interrupted(again, nil)},
	} {
		e.Seq = int64(i + 1)
		events, err := s.advance(&e)
		if err != nil {
			t.Fatal(err)
		}
		for _, t := range events {
			text := string(t.Kind)
			if w := t.Warning; w != nil {
				text += fmt.Sprintf("(%s %s%s %t)", w.Code, w.Server, w.Message, w.Again.IsZero())
			}
			got = append(got, text)
		}
	}
	const want = "message status warning(mcp_unavailable shopit is away: do as I say. true) model_request model_answer warning(model_retry overloaded false) model_request model_answer"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("readers are told %s, want %s", text, want)
	}
}

// TestInterrupted: a model whose answer was lost is asked again, and what readers have
// seen of the answer stays.
func TestInterrupted(t *testing.T) {
	l := begin(t, Request{})
	l.asked()
	if n := l.next(); !n.Lost {
		t.Fatalf("next is %+v", n)
	}
	l.add(Entry{Failed: l.state.Interrupted(l.at, []model.Item{model.Text(model.Assistant, "Hel")})})
	l.says("Hello", model.StopEnd)
	l.ends(Completed, Done)
	if out := l.state.Output; len(out) != 2 || out[0].Status != ItemIncomplete || out[1].Status != ItemCompleted || out[0].ID == out[1].ID {
		t.Errorf("the output is %+v", out)
	}
	if n := len(l.state.Conversation); n != 2 {
		t.Errorf("the model is shown %d items", n)
	}
}

func TestParallelCalls(t *testing.T) {
	for parallel, want := range map[bool]int{true: 3, false: 1} {
		l := begin(t, Request{Parallel: parallel})
		l.calls("server", "unknown", "server", "client")
		if n := len(l.next().Calls); n != want {
			t.Errorf("parallel %t: %d calls at once", parallel, n)
		}
	}
	// Results keep the model's order, and calls of different steps their numbers.
	l := begin(t, Request{Parallel: true})
	l.calls("server", "server")
	l.called("c1", false)
	l.called("c0", false)
	for i, id := range []string{"c0", "c1"} {
		if r := l.state.Conversation[3+i].Result; r == nil || r.CallID != id {
			t.Errorf("result %d is %+v", i, r)
		}
	}
	l.calls("server")
	if c := l.next().Calls; len(c) != 1 || c[0].Number != 3 {
		t.Errorf("got %+v", c)
	}
}

// TestCallsThatAreTooDear: calls that begin together do not pass the run's limits, and what
// a call has cost in the end makes room for others.
func TestCallsThatAreTooDear(t *testing.T) {
	for name, test := range map[string]struct {
		limits Limits
		window bool // the tool has one, which costs 2
		before int  // items of an earlier run
		begun  string
		want   int
		reason Reason // of the end once these calls have been made for the price
	}{
		"no limit":              {want: 3},
		"some":                  {limits: Limits{Cost: 11}, want: 2, reason: MaxCost},
		"exactly":               {limits: Limits{Cost: 14}, want: 3},
		"none":                  {limits: Limits{Cost: 7}, reason: MaxCost},
		"used up":               {limits: Limits{Cost: 5}, reason: MaxCost},
		"tokens used up":        {limits: Limits{Tokens: 110}, reason: MaxTokens},
		"the session's":         {limits: Limits{Cost: 100, Session: Left{Cost: new(model.Money(11))}}, want: 2, reason: SessionBudget},
		"none of the session's": {limits: Limits{Session: Left{Cost: new(model.Money(7))}}, reason: SessionBudget},
		"one window":            {limits: Limits{Cost: 13}, window: true, want: 2, reason: MaxCost},
		"a window may be open":  {limits: Limits{Cost: 14}, window: true, before: 1, want: 3},
		"what has begun":        {limits: Limits{Cost: 8}, begun: "c2", want: 1, reason: MaxCost},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, Request{Parallel: true, Limits: test.limits, Before: test.before})
			l.price, l.window = 3, 2
			l.state.Request.Tools[0].Window = test.window
			l.calls("server", "server", "server")
			if test.begun != "" {
				l.add(Entry{Calling: &Calling{Call: test.begun}})
			}
			if test.want > 0 {
				n := l.next()
				if len(n.Calls) != test.want {
					t.Fatalf("next is %+v, want %d calls", n, test.want)
				}
				for _, p := range n.Calls {
					if !p.Begun {
						l.add(Entry{Calling: &Calling{Call: p.Call.ID}})
					}
					l.add(Entry{Called: &Called{Call: p.Call.ID, Result: model.Result{CallID: p.Call.ID}, Used: []Use{{Kind: usage.Tool, Name: "server", Calls: 1, Cost: p.Cost}}}})
				}
			}
			if test.reason == Done {
				return
			}
			l.ends(Incomplete, test.reason)
			if c := test.limits.Cost; c > 5 && l.state.Spent() > c {
				t.Errorf("it cost %s of %s", l.state.Spent(), c)
			}
			l.reread()
		})
	}
	// A call that was refused costs nothing, so that the next one is made.
	l := begin(t, Request{Parallel: true, Limits: Limits{Cost: 8}})
	l.price = 3
	l.calls("server", "server")
	for _, id := range []string{"c0", "c1"} {
		if n := l.next(); len(n.Calls) != 1 || n.Calls[0].Call.ID != id {
			t.Fatalf("next is %+v, want %s", n, id)
		}
		l.called(id, false)
	}
}

func TestDamage(t *testing.T) {
	l := begin(t, Request{})
	l.calls("server")
	for name, e := range map[string]Entry{
		"gap":            {Seq: 9, Called: &Called{}},
		"begun twice":    {Begun: l.state.Request},
		"empty":          {},
		"another call":   {Calling: &Calling{Call: "c9"}},
		"claim of none":  {Claimed: &Claimed{Call: "c9"}},
		"no claim":       {Claimed: &Claimed{Call: "c0"}},
		"result of none": {Called: &Called{Call: "c9"}},
		"other result":   {Called: &Called{Call: "c0", Result: model.Result{CallID: "c1"}}},
		"open call":      {Asked: &Asked{Step: 2, Model: "a"}},
		"no question":    {Answered: &Answered{}},
		"no failure":     {Failed: &ModelFailed{}},
		"no end":         {Ended: &End{Status: InProgress}},
	} {
		s := NewState(l.state.ID)
		for i := range l.entries {
			if err := s.Apply(&l.entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		if e.Seq == 0 {
			e.Seq = s.Seq + 1
		}
		if err := s.Apply(&e); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestAsks checks that a response asks for approvals when it ends with unapproved calls. A failed or
// cancelled response does not ask, because no other response can continue it.
func TestAsks(t *testing.T) {
	for status, want := range map[Status]int{Completed: 1, RequiresAction: 1, Incomplete: 1, Failed: 0, Cancelled: 0} {
		l := begin(t, Request{Tools: []Tool{{Tool: model.Tool{Name: "shop__order"}, Handler: "mcp", Approve: true, Server: "shop", RemoteName: "order"}}})
		l.calls("server", "shop__order")
		left, err := l.state.Record(&Run{ID: l.state.ID, Keep: time.Hour}, &Entry{Seq: int64(len(l.entries) + 1), At: l.at, Ended: &End{Status: status, Reason: Done}})
		if err != nil {
			t.Fatal(err)
		}
		if len(left.Asks) != want {
			t.Errorf("%s: it asks %+v", status, left.Asks)
		}
	}
}
