package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Turn makes a run a turn of a session. The session's events hold the earlier conversation, because
// copying it would grow the log with each turn.
type Turn struct {
	Session string
	// After and Until select the events that the run begins with: Seq above After, up to Until, the
	// session's last event. Items is their number of conversation items.
	After, Until int64
	Items        int
	// Queued is the turn's position in the session's queue; 0 if it did not wait.
	Queued int64 `json:",omitzero"`
	// Spent is the total of the session's earlier turns.
	Spent Total `json:",omitzero"`
	// Answers are the client's answers to waiting calls. Their results precede Request.Input in the
	// conversation.
	Answers []Answer `json:",omitempty"`
	// Within is how long calls wait for the client after the turn ends; 0 for no limit.
	Within time.Duration `json:",omitzero"`
}

// Answer is a client's answer to a waiting call.
type Answer struct {
	Of   int64  // Told.Seq of the call
	Call string // id of the call
	Tool string
	// Server is the MCP server of Tool; "" for none.
	Server string `json:",omitzero"`
	// Result is the result of a client's tool or of a denied call; nil for an approved call.
	Result *model.Result `json:",omitzero"`
	// Decision is nil for a client's tool.
	Decision *Decision `json:",omitzero"`
	// Expired says that the client did not answer in time.
	Expired bool `json:",omitzero"`
	// Thread, Member and In say where the call was made, as in Wait.
	Thread string `json:",omitzero"`
	Member Member `json:",omitzero"`
	In     int64  `json:",omitzero"`
	// Gone says that Of is a handoff whose thread was abandoned. Result is then its result.
	Gone bool `json:",omitzero"`
}

// Decision says whether a call may run.
type Decision struct {
	Approve bool
	Reason  string `json:",omitzero"`
	Key     string // id of the key that decided; "" if the deadline did
	GivenUp bool   `json:",omitzero"` // the client interrupted its session
}

// Interrupted is the Reason of a Decision with GivenUp. Clients may give the same reason, so check
// GivenUp instead.
const Interrupted = "interrupted"

// Told is a session event about a turn. It is derived from an entry of the run's log and recorded
// with it.
type Told struct {
	Seq  int64     `json:"-"` // in the session, from 1, without gaps
	At   time.Time `json:"-"`
	Kind ToldKind  `json:"-"`

	Item  *model.Item `json:",omitzero"` // for a message, thinking, a call or a result
	Shown string      `json:",omitzero"` // id of the output item that contains Item, to match its deltas
	Cut   bool        `json:",omitzero"` // the answer was cut off, so Item is not part of the conversation
	Of    int64       `json:",omitzero"` // Seq of the call of a result or decision, or of the request of an answer
	// Place is the position, from 1, of a message among the turn's first messages.
	Place int       `json:",omitzero"`
	Tool  *ToldTool `json:",omitzero"` // for a call and its result; nil for a tool that the model does not have

	Decision   *Decision       `json:",omitzero"`
	Note       *Note           `json:",omitzero"` // of a skill; Item is then the message to the model
	Outcome    *Outcome        `json:",omitzero"` // defined by the client; Item is the message to the model
	Evaluation *Evaluation     `json:",omitzero"` // of an outcome; Item is then the message to the model
	Failure    *ToldFailure    `json:",omitzero"`
	Warning    *Warning        `json:",omitzero"`
	Compaction *ToldCompaction `json:",omitzero"` // Item is the summary that models see
	Spent      *Spent          `json:",omitzero"` // by the turn, an answer or an evaluation
	Total      *Total          `json:",omitzero"` // of the session, including the turn
	Failed     bool            `json:",omitzero"` // the model gave no answer, or only a part of one
	Status     *ToldState      `json:",omitzero"`
	Thread     *ToldThread     `json:",omitzero"` // a delegate, or the thread of a waiting call
	Speaker    *Member         `json:",omitzero"` // the agent that speaks from here on
}

// Warning reports a problem in a turn that continues.
type Warning struct {
	Code    WarningCode
	Message string    // for people; it may quote a server, whose text must not reach the model as instructions
	Told    string    `json:",omitzero"` // shown to the model instead of Message
	Server  string    `json:",omitzero"` // for MCPUnavailable: its name
	Again   time.Time `json:",omitzero"` // time of the next try; zero if unknown
}

// WarningCode classifies a Warning.
type WarningCode string

// Codes of warnings.
const (
	ModelRetry       WarningCode = "model_retry"       // the provider failed, and Atoll retries
	MCPUnavailable   WarningCode = "mcp_unavailable"   // a server's tools are missing from the turn
	ToolUnavailable  WarningCode = "tool_unavailable"  // the operator disabled a built-in tool
	CompactionFailed WarningCode = "compaction_failed" // the start of the conversation is dropped instead
	ImageBuilding    WarningCode = "image_building"    // the server is installing programs that the agent's skills need
)

// ToldFailure says why a turn did not complete.
type ToldFailure struct {
	Reason  Reason
	Message string
}

// Spent is the usage of a turn.
type Spent struct {
	Usage model.Usage
	Cost  model.Money // of models, tools and the sandbox
}

// Plus returns the sum.
func (s Spent) Plus(o Spent) Spent { return Spent{s.Usage.Plus(o.Usage), s.Cost.Plus(o.Cost)} }

// Total is the usage of several turns.
type Total struct {
	Spent
	Active time.Duration // total running time
}

// ToldTool describes the tool of a call.
type ToldTool struct {
	Server  string `json:",omitzero"` // an MCP server
	Name    string `json:",omitzero"` // the server's name for the tool, if it differs from the call's
	Client  bool   `json:",omitzero"` // the client runs the tool
	Approve bool   `json:",omitzero"` // the client must approve the call
}

func toldTool(t *Tool) *ToldTool {
	if t == nil {
		return nil
	}
	return &ToldTool{Server: t.Server, Name: t.RemoteName, Client: t.Handler == "", Approve: t.Handler != "" && t.Approve}
}

// ToldState is the status of a session after an event.
type ToldState struct {
	Running bool
	End     Status    `json:",omitzero"` // of the turn, unless Running
	Reason  Reason    `json:",omitzero"`
	Waits   []Wait    `json:",omitempty"` // calls that wait for the client
	Until   time.Time `json:",omitzero"`  // deadline of the waits; zero for none
	Outcome *Carried  `json:",omitzero"`  // outcome that the turn with the answers continues
}

// Wait is a call that waits for the client.
type Wait struct {
	Of      int64  // Told.Seq of the call
	Call    string // id of the call
	Tool    string
	Approve bool // the call waits for a decision, not for its result

	Arguments string `json:"-"`
	Server    string `json:"-"` // the MCP server of the tool; "" for other tools
	// Thread is the thread that made the call, "" for the run itself. Member is the agent in that
	// thread, and In the Told.Seq of the call there. For a call in a thread, Of is the session
	// event that reports it, Call and Hand are the id and Told.Seq of the waiting handoff, and
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
func (t *Told) Sort() Sort {
	by := ""
	switch {
	case t.Kind == ToldMessage && t.Item != nil && t.Item.Message != nil:
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
func (k ToldKind) By(part string) Sort { return Sort(string(k) + "/" + part) }

// Kind returns the kind of a sort.
func (s Sort) Kind() ToldKind {
	kind, _, _ := strings.Cut(string(s), "/")
	return ToldKind(kind)
}

// Begins reports whether a conversation may begin with t.
func (t *Told) Begins() bool {
	return t.Item != nil && !t.Cut && t.Note == nil && t.Evaluation == nil && byUser(t.Item)
}

// Talk reports whether t is part of the conversation.
func (t *Told) Talk() bool { return t.Item != nil && !t.Cut && t.Thread == nil }

// TellAnswers returns the events of answers, numbered from seq.
func TellAnswers(seq int64, at time.Time, answers []Answer) (out []Told) {
	for i := range answers {
		a := &answers[i]
		var thread *ToldThread
		if a.Thread != "" {
			thread = &ToldThread{ID: a.Thread, Member: a.Member}
		}
		if a.Decision != nil {
			out = append(out, Told{Kind: ToldDecision, Of: a.Of, Decision: a.Decision, Thread: thread})
		}
		if a.Result != nil {
			out = append(out, Told{Kind: ToldResult, Of: a.Of, Item: &model.Item{Result: a.Result}, Thread: thread, Tool: &ToldTool{Server: a.Server, Client: a.Decision == nil && !a.Gone}})
		}
	}
	return numbered(seq, at, out)
}

func numbered(seq int64, at time.Time, all []Told) []Told {
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
func (s *State) tell(e *Entry, shown int) (out []Told) {
	turn := s.Request.Turn
	if turn == nil && s.Request.Thread == nil {
		return nil
	}
	next := func(t Told) { out = append(out, t) }
	switch {
	case e.Begun != nil && turn == nil:
		out = s.tellThread()
	case e.Begun != nil:
		s.told = turn.Until
		out = TellAnswers(1, e.At, turn.Answers)
		for i := range e.Begun.Input {
			t := Told{Kind: ToldMessage, Item: &e.Begun.Input[i], Place: i + 1}
			if o := e.Begun.Outcome; o != nil && o.Of == 0 && i == len(e.Begun.Input)-1 {
				t.Kind, t.Outcome = ToldOutcome, o
			}
			next(t)
		}
		next(Told{Kind: ToldStatus, Status: &ToldState{Running: true}})
		out = append(out, tellWarnings(e.Begun)...)
	case e.Answered != nil:
		next(Told{Kind: ToldRequest, At: s.askedAt})
		out = append(out, s.tellAnswer(e.Answered.Answer.Items, shown)...)
		next(Told{Kind: ToldAnswer, Of: s.told + 1, Spent: &Spent{e.Answered.Answer.Usage, e.Answered.Cost.Total}})
	case e.Failed != nil:
		next(Told{Kind: ToldRequest, At: s.askedAt})
		for i := range e.Failed.Shown {
			it := &e.Failed.Shown[i]
			if itemOf(it, s.Request.Tools, ItemIncomplete) == nil {
				continue
			}
			if kind := kindOf(it); kind != ToldCall {
				next(Told{Kind: kind, Item: it, Shown: s.Output[shown].ID, Cut: true})
			}
			shown++
		}
		t := Told{Kind: ToldAnswer, Of: s.told + 1, Failed: true}
		if f := e.Failed; f.Usage != (model.Usage{}) {
			t.Spent = &Spent{f.Usage, f.Cost.Total}
		}
		next(t)
		if f := e.Failed; !f.Again.IsZero() && (f.Failure == model.Transient || f.Failure == model.RateLimited) {
			next(Told{Kind: ToldWarning, Warning: &Warning{Code: ModelRetry, Message: f.Message, Again: f.Again}})
		}
	case e.Claimed != nil:
		if p := s.asking(e.Claimed.Call); p.Opens != nil {
			out = p.Opens.tell(p.Told)
		}
	case e.Called != nil && s.Progress.Open:
		if s.Request.Outcome.Rubric != "" && !s.Progress.Failed() && s.ends == nil {
			next(Told{Kind: ToldGrading, Evaluation: new(s.Progress.Last)})
		}
	case e.Called != nil:
		p := s.asking(e.Called.Call)
		if len(p.held) > 0 {
			out = s.tellHeld(p)
			break
		}
		if p.Opens != nil && e.Called.Left != nil {
			out = p.Opens.tellEnd(p.Told, e.Called.Left)
		}
		next(Told{Kind: ToldResult, Item: &model.Item{Result: &e.Called.Result}, Of: p.Told, Tool: toldTool(p.Tool)})
		for _, kind := range slices.Sorted(maps.Keys(e.Called.Notes)) {
			next(Told{Kind: kind, Note: new(e.Called.Notes[kind]), Of: p.Told})
		}
		if m := e.Called.Moves; m != nil {
			next(Told{Kind: ToldSpeaker, Speaker: &m.To, Of: p.Told})
			out = append(out, tellWarnings(m.Request)...)
		}
	case e.Compacted != nil:
		c := e.Compacted
		if c.Summary == "" {
			next(Told{Kind: ToldWarning, Warning: &Warning{Code: CompactionFailed, Message: c.Failed}})
			break
		}
		it := c.Item()
		next(Told{Kind: ToldCompacted, Item: &it, Compaction: &ToldCompaction{c.Upto}, Spent: &Spent{c.Usage, c.Cost.Total}})
	case e.Evaluating != nil:
		next(Told{Kind: ToldEvaluating, Evaluation: new(s.Progress.Last)})
	case e.Checked != nil && s.Progress.Open:
		next(Told{Kind: ToldGrading, Evaluation: new(s.Progress.Last)})
	case e.Checked != nil && e.Checked.Evaluation != nil:
		next(Told{Kind: ToldEvaluated, Evaluation: new(s.Progress.Last), Item: e.Checked.Say, Spent: new(s.Progress.spent)})
	case e.Checked != nil:
		next(Told{Kind: e.Checked.Kind, Note: &e.Checked.Note, Item: e.Checked.Say})
	case e.Ended != nil:
		out = s.tellEnd(e.Ended, e.At)
	}
	out = numbered(s.told+1, e.At, out)
	s.place(out)
	s.told += int64(len(out))
	return out
}

func tellWarnings(q *Request) (out []Told) {
	for i := range q.Warnings {
		out = append(out, Told{Kind: ToldWarning, Warning: &q.Warnings[i]})
	}
	return out
}

// Warn adds a warning about missing tools to the request and its instructions for the model.
func (q *Request) Warn(w Warning) {
	q.warn(w, " Its tools are missing from this turn. If the task needs them, say so and do not invent their results.")
}

// WarnOfWait adds a warning about slower calls in this turn and tells the model.
func (q *Request) WarnOfWait(w Warning) { q.warn(w, "") }

func (q *Request) warn(w Warning, advice string) {
	q.Warnings = append(q.Warnings, w)
	q.Instructions = strings.TrimSpace(q.Instructions + "\n\n" + w.told() + advice)
}

func (w *Warning) told() string { return cmp.Or(w.Told, w.Message) }

// NoTool returns why a call to an unknown tool did not run. The client may have approved a call to
// an MCP server that has since become unavailable.
func (q *Request) NoTool(name string) string {
	for i := range q.Warnings {
		w := &q.Warnings[i]
		if w.Code == MCPUnavailable && (strings.HasPrefix(name, w.Server+"__") || strings.HasPrefix(name, "mcp__")) {
			return "the call was not made: " + w.told()
		}
	}
	return fmt.Sprintf("there is no tool %q", name)
}

func kindOf(it *model.Item) ToldKind {
	switch {
	case it.Call != nil:
		return ToldCall
	case it.Result != nil:
		return ToldResult
	case it.Reasoning != nil:
		return ToldThinking
	}
	return ToldMessage
}

// tellAnswer returns the events of a model's answer, which follow the request's event.
func (s *State) tellAnswer(items []model.Item, shown int) (out []Told) {
	calls := 0
	for i := range items {
		t := Told{Kind: kindOf(&items[i]), Item: &items[i]}
		if itemOf(t.Item, s.Request.Tools, ItemCompleted) != nil {
			t.Shown = s.Output[shown].ID
			shown++
		}
		if t.Kind == ToldCall {
			p := &s.pending[calls]
			p.Told, t.Tool = s.told+int64(i)+2, toldTool(p.Tool)
			calls++
		}
		out = append(out, t)
	}
	return out
}

func (s *State) tellEnd(end *End, at time.Time) (out []Told) {
	status := &ToldState{End: end.Status, Reason: end.Reason, Outcome: s.carried(end)}
	status.Waits = s.Waits()
	if end.Status == Cancelled {
		out = append(out, Told{Kind: ToldInterrupt})
	}
	if s.Request.Turn != nil && len(status.Waits) > 0 && s.Request.Turn.Within > 0 {
		status.Until = at.Add(s.Request.Turn.Within)
	}
	for i := range s.pending {
		if p := &s.pending[i]; p.result == nil && !s.waits(p) && !s.Progress.Open {
			if p.Opens != nil && !p.Unclaimed {
				out = append(out, p.Opens.tellEnd(p.Told, &ThreadEnd{Status: Cancelled})...)
			}
			out = append(out, Told{Kind: ToldResult, Item: &model.Item{Result: lost(p.Call.ID)}, Of: p.Told, Tool: toldTool(p.Tool)})
		}
	}
	if cut := s.cut(end); cut != nil {
		out = append(out, Told{Kind: ToldEvaluated, Evaluation: cut, Spent: new(s.Progress.cost())})
	}
	if end.Reason != Done || end.Message != "" {
		out = append(out, Told{Kind: ToldError, Failure: &ToldFailure{end.Reason, end.Message}})
	}
	spent := Spent{s.AllUsage(), s.Spent()}
	used := Told{Kind: ToldUsage, Spent: &spent}
	if t := s.Request.Turn; t != nil {
		used.Total = &Total{t.Spent.Spent.Plus(spent), t.Spent.Active + at.Sub(s.Began)}
	}
	return append(out, used, Told{Kind: ToldStatus, Status: status})
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
