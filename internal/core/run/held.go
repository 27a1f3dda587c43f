package run

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Held is a call in a thread that waits for the client. The delegating calls above the thread wait
// with it.
type Held struct {
	Thread string // the thread that made the call
	Member Member // the agent that works in the thread
	In     int64  // SessionEvent.Seq of the call in Thread
	Call   *model.Call
	Tool   *EventTool
}

// Resumed resumes a delegating call: its thread continues with the client's answers to every
// waiting call in and below it.
type Resumed struct {
	Thread  string
	Answers []Answer
}

// Kept is the state from which a waiting thread resumes.
type Kept struct {
	Items []model.Item // the thread's conversation
	Waits []Wait
}

// Held returns the calls in and below a thread that wait for the client.
func (s *State) Held() (out []Held) {
	for _, p := range s.Waiting() {
		if len(p.held) > 0 {
			out = append(out, p.held...)
		} else if t := s.Request.Thread; t != nil {
			out = append(out, Held{Thread: t.ID, Member: t.Member, In: p.Event, Call: p.Call, Tool: eventTool(p.Tool)})
		}
	}
	return out
}

// Waits returns the calls that an ended run waits for: its own, and those of threads below it.
func (s *State) Waits() (out []Wait) {
	for _, p := range s.Waiting() {
		if len(p.held) == 0 {
			out = append(out, Wait{Of: p.Event, Call: p.Call.ID, Tool: p.Call.Name, Approve: p.Approves(), Arguments: p.Call.Arguments, Server: serverOf(eventTool(p.Tool))})
		}
		for i := range p.held {
			h := &p.held[i]
			w := Wait{Of: p.heldAt + int64(i), Call: p.Call.ID, Tool: h.Call.Name, Approve: h.Tool == nil || !h.Tool.Client, Arguments: h.Call.Arguments, Server: serverOf(h.Tool), Thread: h.Thread, Member: h.Member, In: h.In, Hand: p.Event}
			if p.Opens != nil {
				w.Child = p.Opens.ID
			}
			out = append(out, w)
		}
	}
	return out
}

func serverOf(t *EventTool) string {
	if t == nil {
		return ""
	}
	return t.Server
}

// heldEvents returns the events that report waiting calls in threads to readers.
func (s *State) heldEvents(p *Pending) (out []SessionEvent) {
	p.heldAt = s.events + 1
	for i := range p.held {
		h := &p.held[i]
		out = append(out, SessionEvent{Kind: EventCall, Item: &model.Item{Call: h.Call}, Tool: h.Tool, Thread: &EventThread{ID: h.Thread, Member: h.Member}})
	}
	return out
}

// of reports whether a answers w. own is the thread whose run waits.
func (a *Answer) of(w *Wait, own string) bool {
	if w.Thread == "" {
		return a.Thread == own && a.In == w.Of
	}
	return a.Thread == w.Thread && a.In == w.In
}

// Resume adds to approved the call that the next run starts with because the client answered w. A
// call in a thread resumes the delegating call.
func Resume(approved []Approved, w *Wait, a *Answer) []Approved {
	if w.Thread == "" {
		return append(approved, Approved{Call: w.Call, Event: w.Of})
	}
	at := slices.IndexFunc(approved, func(o Approved) bool { return o.Call == w.Call && o.Resumes != nil })
	if at < 0 {
		at, approved = len(approved), append(approved, Approved{Call: w.Call, Event: w.Hand, Resumes: &Resumed{Thread: w.Child}})
	}
	approved[at].Resumes.Answers = append(approved[at].Resumes.Answers, *a)
	return approved
}

// Onto makes q, a request to a thread's agent, continue where the thread waited, with answers to
// all its waiting calls.
func (k *Kept) Onto(q *Request, answers []Answer) error {
	q.Input = slices.Clone(k.Items)
	for i := range k.Waits {
		w := &k.Waits[i]
		at := slices.IndexFunc(answers, func(a Answer) bool { return a.of(w, q.Thread.ID) })
		if at < 0 {
			return fmt.Errorf("thread %s: call %d that waits has no answer", q.Thread.ID, w.Of)
		}
		a := answers[at]
		a.Of, a.Call = w.Of, w.Call
		if w.Thread == "" {
			a.Thread, a.In = "", 0
		}
		q.Thread.Answers = append(q.Thread.Answers, a)
		if w.Thread == "" && a.Result != nil {
			q.Input = append(q.Input, model.Item{Result: a.Result})
			continue
		}
		q.Approved = Resume(q.Approved, w, &answers[at])
	}
	q.Before = len(q.Input)
	return nil
}
