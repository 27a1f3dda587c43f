package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Thread makes a run the delegated work of another run: a separate conversation in a session, with
// its own events.
type Thread struct {
	ID      string
	Session string
	// Chain lists the agents that delegated the work, from the session's agent down. Member is the
	// agent that does it.
	Chain  []Member
	Member Member
	// Summary summarizes the conversation that the thread came from. It is nil if the thread gets
	// nothing, or the full conversation in Request.Input.
	Summary *Summary `json:",omitzero"`
	// Until is the SessionEvent.Seq of the last event of a thread that resumes after waiting for the
	// client, and Answers are the client's answers; 0 for a new thread.
	Until   int64    `json:",omitzero"`
	Answers []Answer `json:",omitempty"`
}

// Member is a version of an agent that takes part in a turn.
type Member struct {
	Agent   string
	Version int
	Name    string `json:",omitzero"`
}

// Summary is a model's summary of a conversation.
type Summary struct {
	Text  string
	Model string
	Usage model.Usage
	Cost  model.Cost
}

// Opens is a thread that a call opens.
type Opens struct {
	ID     string
	Member Member
	Task   string // the message that the thread starts with
	// Again says that the thread was already open.
	Again bool `json:",omitzero"`
}

// ThreadEnd says how a thread ended.
type ThreadEnd struct {
	Status Status // of its run
	Reason Reason `json:",omitzero"`
	Text   string // the thread's answer
}

// Ended reports whether the thread was terminated rather than finished.
func (e *ThreadEnd) Ended() bool {
	return e.Status != Completed && e.Status != Incomplete || e.Reason == MaxDuration
}

// Move continues a conversation with another agent.
type Move struct {
	To Member
	// Request is the request to that agent, without a conversation.
	Request *Request
}

// ChildOf returns the id of the run that a call delegates to. It is deterministic.
func ChildOf(parent ID, number int) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", parent, number))
	return ID("run_" + hex.EncodeToString(sum[:16]))
}

// ThreadOf returns the thread id of a delegated run.
func ThreadOf(child ID) string { return "sthr_" + string(child[len("run_"):]) }

// OfThread returns the run id of a thread.
func OfThread(thread string) ID { return ID("run_" + thread[len("sthr_"):]) }

// EventThread is what readers see of a thread.
type EventThread struct {
	ID     string `json:",omitzero"`
	Member Member `json:",omitzero"`
	Text   string `json:",omitzero"` // a message sent to or received from the thread, or the summary that it starts with
	Status Status `json:",omitzero"` // of the run, once it has ended
	Reason Reason `json:",omitzero"`
}

func (o *Opens) events(of int64) []SessionEvent {
	if o.Again {
		return nil
	}
	return []SessionEvent{
		{Kind: EventOpened, Of: of, Thread: &EventThread{ID: o.ID, Member: o.Member}},
		{Kind: EventSent, Of: of, Thread: &EventThread{ID: o.ID, Member: o.Member, Text: o.Task}},
	}
}

func (o *Opens) endEvents(of int64, e *ThreadEnd) (out []SessionEvent) {
	if e.Text != "" {
		out = append(out, SessionEvent{Kind: EventReceived, Of: of, Thread: &EventThread{ID: o.ID, Member: o.Member, Text: e.Text}})
	}
	kind := EventIdle
	if e.Ended() {
		kind = EventTerminated
	}
	return append(out, SessionEvent{Kind: kind, Of: of, Thread: &EventThread{ID: o.ID, Member: o.Member, Status: e.Status, Reason: e.Reason}})
}

// tellThread returns the events at the start of a thread.
func (s *State) threadEvents() (out []SessionEvent) {
	t := s.Request.Thread
	if s.events = t.Until; t.Until > 0 {
		out = AnswerEvents(1, s.Began, t.Answers)
	}
	if t.Summary != nil {
		out = append(out, SessionEvent{Kind: EventSummary, Thread: &EventThread{Text: t.Summary.Text}, Spent: &Spent{t.Summary.Usage, t.Summary.Cost.Total}})
	}
	for i := s.Request.Before; i < len(s.Request.Input); i++ {
		out = append(out, SessionEvent{Kind: EventMessage, Item: &s.Request.Input[i], Place: i - s.Request.Before + 1})
	}
	return append(append(out, SessionEvent{Kind: EventStatus, Status: &SessionState{Running: true}}), warningEvents(s.Request)...)
}

// of returns the session and thread that the run's events belong to; thread is "" for the session
// itself.
func (s *State) of() (session, thread string) {
	if t := s.Request.Thread; t != nil {
		return t.Session, t.ID
	}
	return s.Request.Turn.Session, ""
}

// Onto changes q into a request to the agent that m moves to. It keeps the conversation and the
// files of the previous agent's tools.
func (m *Move) Onto(q *Request) {
	to := m.Request
	q.Agent = to.Agent
	q.Models, q.Instructions, q.Tools, q.Remotes, q.Skills, q.NoWeb = to.Models, to.Instructions, to.Tools, to.Remotes, to.Skills, to.NoWeb
	q.Copies, q.PlaceFiles = to.Copies, q.PlaceFiles || to.PlaceFiles
	q.Choice, q.Parallel, q.Reasoning, q.Temperature, q.TopP, q.Stop = to.Choice, to.Parallel, to.Reasoning, to.Temperature, to.TopP, to.Stop
	q.Limits.OutputTokens, q.Limits.Steps, q.RetryFor, q.Compact = to.Limits.OutputTokens, to.Limits.Steps, to.RetryFor, to.Compact
}

// move continues the run with another agent once the answer has no open calls. Each agent's answers
// have their own limit.
func (s *State) move() {
	if s.moves == nil {
		return
	}
	q := *s.Request
	if s.moves.Onto(&q); q.Limits.OutputTokens > 0 {
		q.Limits.OutputTokens += s.said()
	}
	s.Request, s.moves = &q, nil
	s.Moves++
}

// First reports whether a call is the first of a handler in its answer.
func (s *State) First(handler string, number int) bool {
	for i := range s.pending {
		if p := &s.pending[i]; p.Number < number && p.Tool != nil && p.Tool.Handler == handler {
			return false
		}
	}
	return true
}

// Opened reports whether a call of the last answer has opened a thread.
func (s *State) Opened(call string) bool {
	p := s.asking(call)
	return p.Opens != nil && !p.Unclaimed
}

// chargeSummary charges for the model that wrote a summary.
func (t *Trace) chargeSummary(r *Run, e *Entry, s *Summary) {
	t.aside(r, e, aside{s.Model, s.Usage, s.Cost, digest(s.Text), map[string]string{"summary": "true"}})
}
