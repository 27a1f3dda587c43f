package run

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// SessionEvent is an event of a session about a turn. It derives from an entry of the run's log and
// is recorded with it.
type SessionEvent struct {
	Seq  int64     `json:"-"` // in the session, from 1, without gaps
	At   time.Time `json:"-"`
	Kind EventKind `json:"-"`

	Item  *model.Item `json:",omitzero"` // for a message, thinking, a call or a result
	Shown string      `json:",omitzero"` // id of the output item that contains Item, to match its deltas
	Cut   bool        `json:",omitzero"` // the answer was cut off, so Item is not part of the conversation
	Of    int64       `json:",omitzero"` // Seq of the call of a result or decision, or of the request of an answer
	// Place is the position, from 1, of a message among the turn's first messages.
	Place int        `json:",omitzero"`
	Tool  *EventTool `json:",omitzero"` // for a call and its result; nil for a tool that the model does not have

	Decision   *Decision     `json:",omitzero"`
	Note       *Note         `json:",omitzero"` // of a skill; Item is then the message to the model
	Outcome    *Outcome      `json:",omitzero"` // defined by the client; Item is the message to the model
	Evaluation *Evaluation   `json:",omitzero"` // of an outcome; Item is then the message to the model
	Failure    *TurnFailure  `json:",omitzero"`
	Warning    *Warning      `json:",omitzero"`
	Compaction *Compaction   `json:",omitzero"` // Item is the summary that models see
	Spent      *Spent        `json:",omitzero"` // by the turn, an answer or an evaluation
	Total      *Total        `json:",omitzero"` // of the session, including the turn
	Failed     bool          `json:",omitzero"` // the model gave no answer, or only a part of one
	Status     *SessionState `json:",omitzero"`
	Thread     *EventThread  `json:",omitzero"` // a delegate, or the thread of a waiting call
	Speaker    *Member       `json:",omitzero"` // the agent that speaks from here on
}

// TurnFailure says why a turn did not complete.
type TurnFailure struct {
	Reason  Reason
	Message string
}

// EventTool describes the tool of a call.
type EventTool struct {
	Server  string `json:",omitzero"` // an MCP server
	Name    string `json:",omitzero"` // the server's name for the tool, if it differs from the call's
	Client  bool   `json:",omitzero"` // the client runs the tool
	Approve bool   `json:",omitzero"` // the client must approve the call
}

func eventTool(t *Tool) *EventTool {
	if t == nil {
		return nil
	}
	return &EventTool{Server: t.Server, Name: t.RemoteName, Client: t.Handler == "", Approve: t.Handler != "" && t.Approve}
}

// SessionState is the status of a session after an event.
type SessionState struct {
	Running bool
	End     Status    `json:",omitzero"` // of the turn, unless Running
	Reason  Reason    `json:",omitzero"`
	Waits   []Wait    `json:",omitempty"` // calls that wait for the client
	Until   time.Time `json:",omitzero"`  // deadline of the waits; zero for none
	Outcome *Carried  `json:",omitzero"`  // outcome that the turn with the answers continues
}

// Wait is a call that waits for the client.
type Wait struct {
	Of      int64  // SessionEvent.Seq of the call
	Call    string // id of the call
	Tool    string
	Approve bool // the call waits for a decision, not for its result

	Arguments string `json:"-"`
	Server    string `json:"-"` // the MCP server of the tool; "" for other tools
	// Thread is the thread that made the call, "" for the run itself. Member is the agent in that
	// thread, and In the SessionEvent.Seq of the call there. For a call in a thread, Of is the session
	// event that reports it, Call and Hand are the id and SessionEvent.Seq of the waiting handoff, and
	// Child is the handoff's thread.
	Thread string `json:",omitzero"`
	Member Member `json:",omitzero"`
	In     int64  `json:",omitzero"`
	Hand   int64  `json:",omitzero"`
	Child  string `json:",omitzero"`
}

// Sort is a kind of event plus its origin where that matters: "message/user", "tool_use/client".
// Events are stored and filtered by it.
type Sort string

// Origins in a Sort.
const (
	ByClient = "client"
	ByServer = "mcp"
	Begun    = "running"
)

// Sort returns the sort of t.
func (t *SessionEvent) Sort() Sort {
	by := ""
	switch {
	case t.Kind == EventMessage && t.Item != nil && t.Item.Message != nil:
		by = string(t.Item.Message.Role)
	case t.Status != nil && t.Status.Running:
		by = Begun
	case t.Tool != nil && t.Tool.Client:
		by = ByClient
	case t.Tool != nil && t.Tool.Server != "":
		by = ByServer
	}
	if by == "" {
		return Sort(t.Kind)
	}
	return t.Kind.By(by)
}

// By returns the sort for a kind and an origin.
func (k EventKind) By(part string) Sort { return Sort(string(k) + "/" + part) }

// Kind returns the kind of a sort.
func (s Sort) Kind() EventKind {
	kind, _, _ := strings.Cut(string(s), "/")
	return EventKind(kind)
}

// Begins reports whether a conversation may begin with t.
func (t *SessionEvent) Begins() bool {
	return t.Item != nil && !t.Cut && t.Note == nil && t.Evaluation == nil && byUser(t.Item)
}

// Talk reports whether t is part of the conversation.
func (t *SessionEvent) Talk() bool { return t.Item != nil && !t.Cut && t.Thread == nil }

// AnswerEvents returns the events of answers, numbered from seq.
func AnswerEvents(seq int64, at time.Time, answers []Answer) (out []SessionEvent) {
	for i := range answers {
		a := &answers[i]
		var thread *EventThread
		if a.Thread != "" {
			thread = &EventThread{ID: a.Thread, Member: a.Member}
		}
		if a.Decision != nil {
			out = append(out, SessionEvent{Kind: EventDecision, Of: a.Of, Decision: a.Decision, Thread: thread})
		}
		if a.Result != nil {
			out = append(out, SessionEvent{Kind: EventResult, Of: a.Of, Item: &model.Item{Result: a.Result}, Thread: thread, Tool: &EventTool{Server: a.Server, Client: a.Decision == nil && !a.Gone}})
		}
	}
	return numbered(seq, at, out)
}

func numbered(seq int64, at time.Time, all []SessionEvent) []SessionEvent {
	for i := range all {
		t := &all[i]
		if t.Seq = seq + int64(i); t.At.IsZero() {
			t.At = at
		}
	}
	return all
}

// tell returns the events of the entry just applied and records their numbers. shown is the number
// of output items before it.
func (s *State) sessionEvents(e *Entry, shown int) (out []SessionEvent) {
	turn := s.Request.Turn
	if turn == nil && s.Request.Thread == nil {
		return nil
	}
	next := func(t SessionEvent) { out = append(out, t) }
	switch {
	case e.Begun != nil && turn == nil:
		out = s.threadEvents()
	case e.Begun != nil:
		s.events = turn.Until
		out = AnswerEvents(1, e.At, turn.Answers)
		for i := range e.Begun.Input {
			t := SessionEvent{Kind: EventMessage, Item: &e.Begun.Input[i], Place: i + 1}
			if o := e.Begun.Outcome; o != nil && o.Of == 0 && i == len(e.Begun.Input)-1 {
				t.Kind, t.Outcome = EventOutcome, o
			}
			next(t)
		}
		next(SessionEvent{Kind: EventStatus, Status: &SessionState{Running: true}})
		out = append(out, warningEvents(e.Begun)...)
	case e.Answered != nil:
		next(SessionEvent{Kind: EventRequest, At: s.askedAt})
		out = append(out, s.itemEvents(e.Answered.Answer.Items, shown)...)
		next(SessionEvent{Kind: EventAnswer, Of: s.events + 1, Spent: &Spent{e.Answered.Answer.Usage, e.Answered.Cost.Total}})
	case e.Failed != nil:
		next(SessionEvent{Kind: EventRequest, At: s.askedAt})
		for i := range e.Failed.Shown {
			it := &e.Failed.Shown[i]
			if itemOf(it, s.Request.Tools, ItemIncomplete) == nil {
				continue
			}
			if kind := kindOf(it); kind != EventCall {
				next(SessionEvent{Kind: kind, Item: it, Shown: s.Output[shown].ID, Cut: true})
			}
			shown++
		}
		t := SessionEvent{Kind: EventAnswer, Of: s.events + 1, Failed: true}
		if f := e.Failed; f.Usage != (model.Usage{}) {
			t.Spent = &Spent{f.Usage, f.Cost.Total}
		}
		next(t)
		if f := e.Failed; !f.Again.IsZero() && (f.Failure == model.Transient || f.Failure == model.RateLimited) {
			next(SessionEvent{Kind: EventWarning, Warning: &Warning{Code: ModelRetry, Message: f.Message, Again: f.Again}})
		}
	case e.Claimed != nil:
		if p := s.asking(e.Claimed.Call); p.Opens != nil {
			out = p.Opens.events(p.Event)
		}
	case e.Called != nil && s.Progress.Open:
		if s.Request.Outcome.Rubric != "" && !s.Progress.Failed() && s.ends == nil {
			next(SessionEvent{Kind: EventGrading, Evaluation: new(s.Progress.Last)})
		}
	case e.Called != nil:
		p := s.asking(e.Called.Call)
		if len(p.held) > 0 {
			out = s.heldEvents(p)
			break
		}
		if p.Opens != nil && e.Called.Left != nil {
			out = p.Opens.endEvents(p.Event, e.Called.Left)
		}
		next(SessionEvent{Kind: EventResult, Item: &model.Item{Result: &e.Called.Result}, Of: p.Event, Tool: eventTool(p.Tool)})
		for _, kind := range slices.Sorted(maps.Keys(e.Called.Notes)) {
			next(SessionEvent{Kind: kind, Note: new(e.Called.Notes[kind]), Of: p.Event})
		}
		if m := e.Called.Moves; m != nil {
			next(SessionEvent{Kind: EventSpeaker, Speaker: &m.To, Of: p.Event})
			out = append(out, warningEvents(m.Request)...)
		}
	case e.Compacted != nil:
		c := e.Compacted
		if c.Summary == "" {
			next(SessionEvent{Kind: EventWarning, Warning: &Warning{Code: CompactionFailed, Message: c.Failed}})
			break
		}
		it := c.Item()
		next(SessionEvent{Kind: EventCompacted, Item: &it, Compaction: &Compaction{c.Upto}, Spent: &Spent{c.Usage, c.Cost.Total}})
	case e.Evaluating != nil:
		next(SessionEvent{Kind: EventEvaluating, Evaluation: new(s.Progress.Last)})
	case e.Checked != nil && s.Progress.Open:
		next(SessionEvent{Kind: EventGrading, Evaluation: new(s.Progress.Last)})
	case e.Checked != nil && e.Checked.Evaluation != nil:
		next(SessionEvent{Kind: EventEvaluated, Evaluation: new(s.Progress.Last), Item: e.Checked.Say, Spent: new(s.Progress.spent)})
	case e.Checked != nil:
		next(SessionEvent{Kind: e.Checked.Kind, Note: &e.Checked.Note, Item: e.Checked.Say})
	case e.Ended != nil:
		out = s.endEvents(e.Ended, e.At)
	}
	out = numbered(s.events+1, e.At, out)
	s.placeOutcome(out)
	s.events += int64(len(out))
	return out
}

func kindOf(it *model.Item) EventKind {
	switch {
	case it.Call != nil:
		return EventCall
	case it.Result != nil:
		return EventResult
	case it.Reasoning != nil:
		return EventThinking
	}
	return EventMessage
}

// itemEvents returns the events of a model's answer, which follow the request's event.
func (s *State) itemEvents(items []model.Item, shown int) (out []SessionEvent) {
	calls := 0
	for i := range items {
		t := SessionEvent{Kind: kindOf(&items[i]), Item: &items[i]}
		if itemOf(t.Item, s.Request.Tools, ItemCompleted) != nil {
			t.Shown = s.Output[shown].ID
			shown++
		}
		if t.Kind == EventCall {
			p := &s.pending[calls]
			p.Event, t.Tool = s.events+int64(i)+2, eventTool(p.Tool)
			calls++
		}
		out = append(out, t)
	}
	return out
}

func (s *State) endEvents(end *End, at time.Time) (out []SessionEvent) {
	status := &SessionState{End: end.Status, Reason: end.Reason, Outcome: s.carried(end)}
	status.Waits = s.Waits()
	if end.Status == Cancelled {
		out = append(out, SessionEvent{Kind: EventInterrupt})
	}
	if s.Request.Turn != nil && len(status.Waits) > 0 && s.Request.Turn.Within > 0 {
		status.Until = at.Add(s.Request.Turn.Within)
	}
	for i := range s.pending {
		if p := &s.pending[i]; p.result == nil && !s.waits(p) && !s.Progress.Open {
			if p.Opens != nil && !p.Unclaimed {
				out = append(out, p.Opens.endEvents(p.Event, &ThreadEnd{Status: Cancelled})...)
			}
			out = append(out, SessionEvent{Kind: EventResult, Item: &model.Item{Result: lost(p.Call.ID)}, Of: p.Event, Tool: eventTool(p.Tool)})
		}
	}
	if cut := s.cut(end); cut != nil {
		out = append(out, SessionEvent{Kind: EventEvaluated, Evaluation: cut, Spent: new(s.Progress.cost())})
	}
	if end.Reason != Done || end.Message != "" {
		out = append(out, SessionEvent{Kind: EventError, Failure: &TurnFailure{end.Reason, end.Message}})
	}
	spent := Spent{s.AllUsage(), s.Spent()}
	used := SessionEvent{Kind: EventUsage, Spent: &spent}
	if t := s.Request.Turn; t != nil {
		used.Total = &Total{t.Spent.Spent.Plus(spent), t.Spent.Active + at.Sub(s.Began)}
	}
	return append(out, used, SessionEvent{Kind: EventStatus, Status: status})
}

// asking returns the call of the last answer with an id.
func (s *State) asking(call string) *Pending {
	for i := range s.pending {
		if s.pending[i].Call.ID == call {
			return &s.pending[i]
		}
	}
	return &Pending{}
}
