package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Thread makes a run the work that another run has handed on: a conversation of its own in a
// session, with events of its own.
type Thread struct {
	ID      string
	Session string
	// Chain are the agents that the work came by, from that of the session on, and Member is the
	// one that does it.
	Chain  []Member
	Member Member
	// Summary is what the thread is told of the conversation that it came from; nil for nothing,
	// or for all of it, which is in Request.Input then.
	Summary *Summary `json:",omitzero"`
	// Until is Told.Seq of the last event of a thread that goes on after it has waited for the client,
	// and Answers are the client's; 0 for one that begins.
	Until   int64    `json:",omitzero"`
	Answers []Answer `json:",omitempty"`
}

// Member is a version of an agent that has a part in a turn.
type Member struct {
	Agent   string
	Version int
	Name    string `json:",omitzero"`
}

// Summary is what a model made of a conversation.
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
	Task   string // that it is sent
	// Again says that the thread was open before.
	Again bool `json:",omitzero"`
}

// ThreadEnd is how a thread was left.
type ThreadEnd struct {
	Status Status // of its run
	Reason Reason `json:",omitzero"`
	Text   string // that it sent
}

// Ended reports whether the thread was ended, and did not come to its end.
func (e *ThreadEnd) Ended() bool {
	return e.Status != Completed && e.Status != Incomplete || e.Reason == MaxDuration
}

// Move has a conversation go on with another agent.
type Move struct {
	To Member
	// Request is what a run of that agent is asked, without a conversation.
	Request *Request
}

// ChildOf names the run that a call hands work to, for good.
func ChildOf(parent ID, number int) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", parent, number))
	return ID("run_" + hex.EncodeToString(sum[:16]))
}

// ThreadOf names the thread of a run that work was handed to.
func ThreadOf(child ID) string { return "sthr_" + string(child[len("run_"):]) }

// OfThread names the run that does the work of a thread.
func OfThread(thread string) ID { return ID("run_" + thread[len("sthr_"):]) }

// Kinds of events of hand-offs.
const (
	ToldOpened     ToldKind = "thread_created"
	ToldSent       ToldKind = "thread_message_sent"
	ToldReceived   ToldKind = "thread_message_received"
	ToldIdle       ToldKind = "thread_idle"
	ToldTerminated ToldKind = "thread_terminated"
	ToldSummary    ToldKind = "context_summary"
	ToldSpeaker    ToldKind = "speaker"
)

// ToldThread is what readers are told of a thread.
type ToldThread struct {
	ID     string `json:",omitzero"`
	Member Member `json:",omitzero"`
	Text   string `json:",omitzero"` // that was sent to it or received from it, or the summary that it begins with
	Status Status `json:",omitzero"` // of the run, at its end
	Reason Reason `json:",omitzero"`
}

func (o *Opens) tell(of int64) []Told {
	if o.Again {
		return nil
	}
	return []Told{
		{Kind: ToldOpened, Of: of, Thread: &ToldThread{ID: o.ID, Member: o.Member}},
		{Kind: ToldSent, Of: of, Thread: &ToldThread{ID: o.ID, Member: o.Member, Text: o.Task}},
	}
}

func (o *Opens) tellEnd(of int64, e *ThreadEnd) (out []Told) {
	if e.Text != "" {
		out = append(out, Told{Kind: ToldReceived, Of: of, Thread: &ToldThread{ID: o.ID, Member: o.Member, Text: e.Text}})
	}
	kind := ToldIdle
	if e.Ended() {
		kind = ToldTerminated
	}
	return append(out, Told{Kind: kind, Of: of, Thread: &ToldThread{ID: o.ID, Member: o.Member, Status: e.Status, Reason: e.Reason}})
}

// tellThread returns the events that a thread begins with.
func (s *State) tellThread() (out []Told) {
	t := s.Request.Thread
	if s.told = t.Until; t.Until > 0 {
		out = TellAnswers(1, s.Began, t.Answers)
	}
	if t.Summary != nil {
		out = append(out, Told{Kind: ToldSummary, Thread: &ToldThread{Text: t.Summary.Text}, Spent: &Spent{t.Summary.Usage, t.Summary.Cost.Total}})
	}
	for i := s.Request.Before; i < len(s.Request.Input); i++ {
		out = append(out, Told{Kind: ToldMessage, Item: &s.Request.Input[i], Place: i - s.Request.Before + 1})
	}
	return append(append(out, Told{Kind: ToldStatus, Status: &ToldState{Running: true}}), tellWarnings(s.Request)...)
}

// of names the session that events of the run are of, and its thread; "" for the session's own.
func (s *State) of() (session, thread string) {
	if t := s.Request.Thread; t != nil {
		return t.Session, t.ID
	}
	return s.Request.Turn.Session, ""
}

// Onto has a request asked of the agent that m moves to. What is said in it stays, and where the
// tools of the agent before have its files.
func (m *Move) Onto(q *Request) {
	to := m.Request
	q.Agent = to.Agent
	q.Models, q.Instructions, q.Tools, q.Remotes, q.Skills, q.NoWeb = to.Models, to.Instructions, to.Tools, to.Remotes, to.Skills, to.NoWeb
	q.Copies, q.PlaceFiles = to.Copies, q.PlaceFiles || to.PlaceFiles
	q.Choice, q.Parallel, q.Reasoning, q.Temperature, q.TopP, q.Stop = to.Choice, to.Parallel, to.Reasoning, to.Temperature, to.TopP, to.Stop
	q.Limits.OutputTokens, q.Limits.Steps, q.RetryFor, q.Compact = to.Limits.OutputTokens, to.Limits.Steps, to.RetryFor, to.Compact
}

// move has the run go on with another agent, when no call of the answer that asked for it is
// open. The answers of each agent have their own bound.
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

// First reports whether no other call of a handler was asked for before a call, by the same
// answer.
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

// chargeSummary adds what the model cost that was asked for a summary.
func (t *Trace) chargeSummary(r *Run, e *Entry, s *Summary) {
	t.aside(r, e, aside{s.Model, s.Usage, s.Cost, digest(s.Text), map[string]string{"summary": "true"}})
}
