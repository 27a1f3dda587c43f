package session

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// send takes a message, or an answer to a call.
func (h *Handlers) send(c *httpapi.Call, in *NewSessionEvent) error {
	s, err := h.find(c)
	if err != nil {
		return err
	}
	switch {
	case s.Archived():
		return session.ErrArchived
	case s.Run != "" || s.Queued > 0 && s.Waits == 0:
		if in.Queue == nil || !*in.Queue {
			return session.ErrBusy
		}
		return h.enqueue(c, s, in)
	case s.Events >= session.MaxEvents:
		return tooLong(s)
	}
	turn, waits, err := h.turn(c, s, in)
	if err != nil {
		return err
	}
	if turn == nil {
		return httpapi.WriteJSON(c.W, http.StatusOK, waitingFor(s, waits))
	}
	stream, err := h.openTurn(c, s)
	if err != nil {
		return err
	}
	defer stream.close()
	r, done, err := h.Turns.Begin(c, turn)
	if err != nil {
		return err
	}
	switch {
	case httpapi.PrefersAsync(c.R.Header):
		c.W.Header().Set("Preference-Applied", "respond-async")
		return accepted(c, s, r, run.InProgress)
	case stream != nil:
		return stream.follow(s.Events, r.ID)
	}
	state, err := h.Turns.End(c.Context(), r, done)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, turnOf(s, state))
}

// enqueue has a message wait for the turns before it.
func (h *Handlers) enqueue(c *httpapi.Call, s *session.Session, in *NewSessionEvent) error {
	t, _, err := h.turn(c, s, in)
	if err != nil {
		return err
	}
	r, q, err := h.Turns.Prepare(c, t)
	if err != nil {
		return err
	}
	if err := h.Store.Enqueue(c.Context(), &session.Queued{Run: *r, Request: *q, Speaker: s.Speaker}); err != nil {
		return err
	}
	h.Queued()
	return accepted(c, s, r, run.Queued)
}

// accepted answers before the end of a turn.
func accepted(c *httpapi.Call, s *session.Session, r *run.Run, status run.Status) error {
	return httpapi.WriteJSON(c.W, http.StatusAccepted, SessionTurn{
		ID: new(turnID(r.ID)), Type: "message", Role: "assistant", SessionID: string(s.ID), Status: string(status), RequiresAction: []WaitingCall{},
	})
}

// turn is what an event asks for; nil while other calls wait for answers too, which are then
// returned.
func (h *Handlers) turn(c *httpapi.Call, s *session.Session, in *NewSessionEvent) (*response.Turn, []session.Call, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	if err := in.allowed(c.Caller); err != nil {
		return nil, nil, err
	}
	t, err := h.plan(c, s)
	if err != nil {
		return nil, nil, err
	}
	if *in.Type != "message" && *in.Type != string(run.ToldOutcome) {
		left, err := h.answer(c, s, in, t)
		if err != nil || len(left) > 0 {
			return nil, left, err
		}
		return t, nil, nil
	}
	if s.Waits > 0 {
		return nil, nil, session.ErrWaits
	}
	if *in.Type == string(run.ToldOutcome) {
		o, err := in.outcome()
		if err != nil {
			return nil, nil, err
		}
		in.Content, t.Outcome, t.Check = new(o.Task()), &o.Outcome, o.Command
	}
	t.In.Input, err = in.input()
	return t, nil, err
}

// plan is a turn of a session, without what begins it.
func (h *Handlers) plan(c *httpapi.Call, s *session.Session) (*response.Turn, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := h.work(c, s); err != nil {
		return nil, err
	}
	of, err := h.partOf(c.Context(), s)
	if err != nil {
		return nil, err
	}
	t, err := h.part(c.Context(), c.Caller, s, of)
	if err != nil {
		return nil, err
	}
	if t.After, err = h.Store.Window(c.Context(), s.ID, s.Events); err != nil {
		return nil, err
	}
	t.Spent, err = h.Store.Total(c.Context(), s.Tenant, s.ID)
	t.Of, t.Within = s, h.within(&of.agent.Definition.Policy)
	return t, err
}

// within is how long calls wait for the client.
func (h *Handlers) within(p *agent.Policy) time.Duration {
	if p.Within > 0 {
		return time.Duration(p.Within) * time.Second
	}
	return h.Within
}

// allowed refuses what the caller's token lacks the right for.
func (in *NewSessionEvent) allowed(p *tenant.Principal) error {
	switch *in.Type {
	case "tool_confirmation":
		return p.MayConfirm()
	case string(run.ToldOutcome):
		return p.MayDefineOutcome(in.Check != nil)
	}
	return nil
}

// check refuses what an event of its type cannot have.
func (in *NewSessionEvent) check() error {
	const outcome = string(run.ToldOutcome)
	fields := []struct {
		name  string
		given bool
		of    []string
	}{
		{"role", in.Role != nil, []string{"message"}},
		{"content", in.Content != nil, []string{"message", "tool_result"}},
		{"tool_use_id", in.ToolUseID != nil, []string{"tool_result", "tool_confirmation"}},
		{"files", in.Files != nil, []string{"message", outcome}},
		{"files_base64", in.FilesBase64 != nil, []string{"message", outcome}},
		{"queue", in.Queue != nil, []string{"message", outcome}},
		{"approve", in.Approve != nil, []string{"tool_confirmation"}},
		{"reason", in.Reason != nil, []string{"tool_confirmation"}},
		{"is_error", in.IsError != nil, []string{"tool_result"}},
		{"description", in.Description != nil, []string{outcome}},
		{"rubric", in.Rubric != nil, []string{outcome}},
		{"check", in.Check != nil, []string{outcome}},
		{"max_iterations", in.MaxIterations != nil, []string{outcome}},
		{"model", in.Model != nil, []string{outcome}},
	}
	optional := []string{"role", "files", "files_base64", "queue", "reason", "is_error", "rubric", "check", "max_iterations", "model"}
	for _, f := range fields {
		switch of := slices.Contains(f.of, *in.Type); {
		case f.given && !of:
			return httpapi.Invalid("%s has no meaning in an event of the type %s", f.name, *in.Type)
		case of && !f.given && !slices.Contains(optional, f.name):
			return httpapi.Invalid("%s is required in an event of the type %s", f.name, *in.Type)
		}
	}
	switch {
	case *in.Type == "message" && (strings.TrimSpace(*in.Content) == "" || len(*in.Content) > session.MaxMessage):
		return httpapi.Invalid("content must be a text of 1 to %d bytes", session.MaxMessage)
	case in.Content != nil && len(*in.Content) > session.MaxMessage:
		return httpapi.Invalid("content must be a text of at most %d bytes", session.MaxMessage)
	case in.Reason != nil && len(*in.Reason) > session.MaxReason:
		return httpapi.Invalid("reason must be a text of at most %d bytes", session.MaxReason)
	case in.Reason != nil && *in.Approve:
		return httpapi.Invalid("reason has a meaning with approve false only")
	}
	return nil
}

// answer adds an answer to a turn, with those that were given before. left are the calls that
// wait for answers yet: the answer is noted then, and no turn begins.
func (h *Handlers) answer(c *httpapi.Call, s *session.Session, in *NewSessionEvent, t *response.Turn) (left []session.Call, err error) {
	a := Answer{Of: *in.ToolUseID, Approve: in.Approve, Failed: in.IsError != nil && *in.IsError}
	if in.Reason != nil {
		a.Reason = *in.Reason
	}
	if in.Content != nil {
		a.Parts = textual(*in.Content)
	}
	if left, err = h.settle(c, s, []Answer{a}, t); err == nil && len(left) > 0 {
		err = h.Store.Answer(c.Context(), s, t.Answers, false)
	}
	return left, err
}

// settle adds answers to a turn, with those that were given before, and returns the calls that
// wait for answers yet.
func (h *Handlers) settle(c *httpapi.Call, s *session.Session, answers []Answer, t *response.Turn) (left []session.Call, err error) {
	calls, err := h.Store.Calls(c.Context(), s.Tenant, s.ID)
	if err != nil {
		return nil, err
	}
	answered := map[int64]bool{}
	given := make([]*run.Answer, len(calls)) // to calls of threads
	for i := range answers {
		a := &answers[i]
		e, err := h.call(c, s, calls, a)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(calls, func(w session.Call) bool { return w.Of == e.Seq && !w.Approved })
		if at < 0 || answered[e.Seq] {
			return nil, session.ErrAnswered
		}
		if !s.Until.IsZero() && !time.Now().Before(s.Until) {
			return nil, session.ErrExpired
		}
		call := &calls[at]
		if call.Approve != (a.Approve != nil) {
			return nil, fault.New(fault.Conflict, "the call waits for another answer: a call of a tool of yours for a tool_result, any other for a tool_confirmation")
		}
		answered[e.Seq], call.Approved = true, call.Thread != "" || a.Approve != nil && *a.Approve
		told := a.to(call, e, c.Caller.Key.ID)
		t.Answers, given[at] = append(t.Answers, told), &told
	}
	for i, w := range calls {
		switch {
		case w.Approved && w.Thread == "":
			t.Approved = append(t.Approved, run.Approved{Call: w.Call, Approval: EventID(s.ID, w.Of), Told: w.Of})
		case w.Approved && given[i] == nil:
			if given[i], err = h.before(c, s, &w); err != nil {
				return nil, err
			}
			fallthrough
		case w.Approved:
			t.Approved = run.Resume(t.Approved, &w.Wait, given[i])
		case !answered[w.Of]:
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		t.Outcome, err = h.underWay(c, s)
	}
	return left, err
}

// before is the answer that the client gave to a call of a thread while others waited.
func (h *Handlers) before(c *httpapi.Call, s *session.Session, w *session.Call) (*run.Answer, error) {
	out, after := &run.Answer{Of: w.Of, Call: w.Call, Tool: w.Tool, Thread: w.Thread, Member: w.Member, In: w.In}, w.Of
	for {
		page, err := h.Store.After(c.Context(), s.Tenant, s.ID, after, readPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			e := &page[i]
			if after = e.Seq; e.Of != w.Of {
				continue
			}
			if out.Decision == nil {
				out.Decision = e.Decision
			}
			if e.Item != nil && e.Item.Result != nil {
				out.Result = e.Item.Result
			}
			if e.Tool != nil {
				out.Server = e.Tool.Server
			}
		}
		if len(page) < readPage {
			return out, nil
		}
	}
}

// to is the answer to a call, whose event is e.
func (a *Answer) to(call *session.Call, e *session.Event, key string) run.Answer {
	out := run.Answer{Of: call.Of, Call: call.Call, Tool: call.Tool, Thread: call.Thread, Member: call.Member, In: call.In}
	made := call.Call
	if e.Item != nil && e.Item.Call != nil {
		made = e.Item.Call.ID // of a thread; Call is that of its hand-off
	}
	if e.Tool != nil {
		out.Server = e.Tool.Server
	}
	switch {
	case a.Approve == nil:
		out.Result = &model.Result{CallID: made, Failed: a.Failed, Parts: a.Parts}
	case *a.Approve:
		out.Decision = &run.Decision{Approve: true, Key: key, Reason: a.Reason}
	default:
		out.Decision = &run.Decision{Key: key, Reason: a.Reason}
		out.Result = refused(made, a.Reason)
	}
	return out
}

func refused(call, reason string) *model.Result {
	text := "The user did not allow this call, so it was not made."
	if reason != "" {
		text += " The user's reason: " + reason
	}
	return result(call, text, true)
}

func result(call, text string, failed bool) *model.Result {
	return &model.Result{CallID: call, Failed: failed, Parts: textual(text)}
}

func textual(text string) []model.Part { return []model.Part{{Kind: model.PartText, Text: text}} }

func (h *Handlers) interrupt(c *httpapi.Call) (out Session, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	switch {
	case s.Run != "":
		err = h.Turns.Interrupt(c.Context(), s)
	case s.Waits > 0 && !s.Archived():
		if _, err = h.giveUp(c, s); err == nil {
			s, err = h.find(c)
		}
	}
	if err != nil {
		return out, err
	}
	return sessionOf(s), nil
}

// giveUp ends the wait for answers: calls that wait, or were approved and not made, are not
// made any more. told is how many events say so.
func (h *Handlers) giveUp(c *httpapi.Call, s *session.Session) (told int64, err error) {
	const why = "The user interrupted the session before this call was made."
	calls, err := h.Store.Calls(c.Context(), s.Tenant, s.ID)
	if err != nil {
		return 0, err
	}
	left, err := h.waiting(c, s)
	if err != nil {
		return 0, err
	}
	var answers []run.Answer
	for _, w := range calls {
		if w.Thread != "" && w.Approved {
			continue
		}
		e, err := h.call(c, s, calls, &Answer{Of: EventID(s.ID, w.Of)})
		if err != nil {
			return 0, err
		}
		a := Answer{Parts: textual(why), Failed: true}
		answer := a.to(&w, e, c.Caller.Key.ID)
		if w.Approve {
			answer.Decision = &run.Decision{Reason: run.Interrupted, Key: c.Caller.Key.ID, GivenUp: true}
		}
		answers = append(answers, answer)
	}
	answers = append(answers, session.GoneWith(calls, why)...)
	if err := h.Store.Answer(c.Context(), s, answers, true); err != nil {
		return 0, err
	}
	h.Told()
	h.free(c, s, left)
	return int64(len(run.TellAnswers(1, time.Time{}, answers))) + 2, nil
}
