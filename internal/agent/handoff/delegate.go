package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/wire"
)

var schemas = map[agent.Mode]json.RawMessage{
	agent.Orchestrator: json.RawMessage(wire.ForModel(reflect.TypeFor[taskInput](), wire.Models)),
	agent.Swarm:        json.RawMessage(wire.ForModel(reflect.TypeFor[moveInput](), wire.Models)),
}

const (
	// endTime bounds waiting for the end of a run that was cancelled, and beginTime recording one.
	endTime   = 25 * time.Second
	beginTime = 30 * time.Second
)

// delegate hands work to an agent, and returns its answer.
func (h *Handoffs) delegate(ctx context.Context, c *loop.Call, o *options, task string) (*loop.Outcome, error) {
	id := run.ChildOf(c.Run.ID, c.Number)
	_, err := h.Store.Run(ctx, c.Run.Tenant, id)
	if fault.KindOf(err) == fault.NotFound {
		var out *loop.Outcome
		if out, err = h.begin(ctx, c, o, id, task); out != nil {
			return out, err
		}
	}
	if err != nil {
		return nil, err
	}
	var out *loop.Outcome
	if err = h.Runs.Wait(ctx, c.Run.Tenant, id); err == nil {
		out, err = h.outcome(ctx, c, o, id)
	}
	if err == nil || ctx.Err() == nil || errors.Is(context.Cause(ctx), loop.ErrLeft) {
		return out, err // after an error the process that goes on with the run waits for it
	}
	out, failed := h.end(context.WithoutCancel(ctx), c, o, id)
	return out, errors.Join(context.Cause(ctx), failed)
}

// begin begins the run that does the work. The outcome is that of a call that was not made; nil
// once the run has begun.
func (h *Handoffs) begin(ctx context.Context, c *loop.Call, o *options, id run.ID, task string) (*loop.Outcome, error) {
	member := o.To
	r := &run.Run{ID: id, Tenant: c.Run.Tenant, Key: c.Run.Key, Environment: c.Run.Environment, Sandbox: c.Run.Sandbox, Session: c.Run.Session, Top: c.Run.ID, Keep: c.Run.Keep}
	if c.Run.Top != "" {
		r.Top = c.Run.Top
	}
	if o.Own {
		r.Sandbox = ownSandbox(c, id)
	}
	thread := &session.Thread{
		ID: run.ThreadOf(id), Session: session.ID(c.Run.Session), Tenant: c.Run.Tenant, Turn: r.Top, Agent: agent.ID(member.Agent), Version: member.Version, Name: member.Name,
	}
	if of := c.Request.Thread; of != nil {
		thread.Parent = of.ID
	}
	if c.Resumes != nil {
		return h.resume(ctx, c, o, r, thread)
	}
	switch {
	case len(o.Chain) > agent.MaxDepth:
		return said(c, "The work was not handed on: hand-offs go no deeper. Do it yourself.", true), nil
	case c.Tokens != nil && *c.Tokens == 0, c.Left != nil && *c.Left == 0:
		return said(c, "The work was not handed on: the budget of the session is used up.", true), nil
	}
	q, err := h.Planner.Plan(ctx, &Ask{Run: r, Chain: o.Chain, To: member, Mode: agent.Orchestrator})
	if err == nil {
		err = h.Threads.OpenThread(ctx, thread, o.Most)
	}
	if why, refused := refusal(ctx, err); refused {
		return said(c, "The work was not handed on: "+why, true), nil
	}
	if err != nil {
		return nil, err
	}
	out, err := h.share(ctx, c, o, q, task)
	if out != nil {
		return out, h.Threads.CloseThread(ctx, thread)
	}
	if err != nil {
		return nil, err
	}
	q.Thread.ID, q.Thread.Session, q.Thread.Chain, q.Thread.Member = thread.ID, c.Run.Session, o.Chain, member
	q.Input = append(q.Input, model.Text(model.User, task))
	return nil, h.start(ctx, c, o, r, q)
}

// ownSandbox names the sandbox of a thread, which is the same in all of its runs.
func ownSandbox(c *loop.Call, id run.ID) string {
	if c.Resumes != nil {
		id = run.OfThread(c.Resumes.Thread)
	}
	return run.SandboxOf(id)
}

// letGo ends the sandbox of a thread that has ended, if it had one of its own.
func (h *Handoffs) letGo(ctx context.Context, c *loop.Call, o *options, id run.ID) {
	if o.Own {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		h.LetGo(ctx, &run.Run{ID: id, Tenant: c.Run.Tenant, Key: c.Run.Key, Environment: c.Run.Environment, Sandbox: ownSandbox(c, id)})
	}
}

// resume begins the run that goes on with a thread which waited for the client.
func (h *Handoffs) resume(ctx context.Context, c *loop.Call, o *options, r *run.Run, thread *session.Thread) (*loop.Outcome, error) {
	q, err := h.Planner.Plan(ctx, &Ask{Run: r, Chain: o.Chain, To: o.To, Mode: agent.Orchestrator})
	var kept *run.Kept
	if err == nil {
		thread.ID = c.Resumes.Thread
		kept, err = h.Threads.ResumeThread(ctx, thread)
	}
	if why, refused := refusal(ctx, err); refused {
		h.letGo(ctx, c, o, r.ID)
		return said(c, o.To.Name+" could not continue with its work: "+why, true), nil
	}
	if err != nil {
		return nil, err
	}
	q.Thread = &run.Thread{ID: thread.ID, Session: c.Run.Session, Chain: o.Chain, Member: o.To, Until: thread.Events}
	if err := kept.Onto(q, c.Resumes.Answers); err != nil {
		return nil, err
	}
	return nil, h.start(ctx, c, o, r, q)
}

// start begins a run that does work for a call.
func (h *Handoffs) start(ctx context.Context, c *loop.Call, o *options, r *run.Run, q *run.Request) error {
	q.CacheKey, q.Publish, q.Limits.Duration, q.Limits.Session = q.Thread.ID, true, milliseconds(o.Timeout), share(c)
	if c.Claim != nil {
		if err := c.Claim(ctx); err != nil {
			return err
		}
	}
	// A run that is on record is driven: it must not be left half begun.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTime)
	defer cancel()
	_, err := h.Runs.Begin(own, r, q, 0, nil)
	return err
}

// share is what a hand-off has of the session's budget: an even part, beside others.
func share(c *loop.Call) (l run.Left) {
	n := max(1, c.Share)
	if c.Tokens != nil {
		l.Tokens = new(*c.Tokens / int64(n))
	}
	if c.Left != nil && c.Request.Limits.Session.Cost != nil {
		l.Cost = new(*c.Left / model.Money(n))
	}
	return l
}

// refusal is why work cannot be handed on, for the model to read.
func refusal(ctx context.Context, err error) (why string, refused bool) {
	switch fault.KindOf(err) {
	case fault.Internal, fault.Unavailable:
		return "", false
	}
	if err == nil || ctx.Err() != nil {
		return "", false
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg, true
	}
	return err.Error(), true
}

// end ends a run that does work for one that ends, and all that it has handed on. The run may have
// ended before, with calls that wait for the client.
func (h *Handoffs) end(ctx context.Context, c *loop.Call, o *options, id run.ID) (*loop.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	err := h.Runs.Cancel(ctx, c.Run.Tenant, id)
	switch fault.KindOf(err) {
	case fault.NotFound: // it has not begun; its thread may have, and waited
		h.letGo(ctx, c, o, id)
		return &loop.Outcome{}, nil
	case fault.Conflict: // it has ended
		err = nil
	}
	if err == nil {
		err = h.Runs.Wait(ctx, c.Run.Tenant, id)
	}
	if err != nil {
		return nil, fmt.Errorf("stop the run %s that received the hand-off: %w", id, err)
	}
	s, err := h.Runs.State(ctx, id)
	if err != nil {
		return nil, err
	}
	h.letGo(ctx, c, o, id)
	return &loop.Outcome{Below: run.Spent{Usage: s.AllUsage(), Cost: s.Spent()}}, nil
}

// End implements loop.Ender.
func (h *Handoffs) End(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	o, err := optionsOf(c.Tool)
	if err != nil || o.Mode != agent.Orchestrator {
		return nil, err
	}
	return h.end(ctx, c, &o, run.ChildOf(c.Run.ID, c.Number))
}

// outcome is what a run came to that has ended.
func (h *Handoffs) outcome(ctx context.Context, c *loop.Call, o *options, id run.ID) (*loop.Outcome, error) {
	s, err := h.Runs.State(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.End == nil {
		return nil, fmt.Errorf("the run %s ended without a final record", id)
	}
	if s.End.Status == run.RequiresAction {
		return &loop.Outcome{Held: s.Held(), Below: run.Spent{Usage: s.AllUsage(), Cost: s.Spent()}}, nil
	}
	h.letGo(ctx, c, o, id)
	text := lastText(s)
	told := run.ThreadEnd{Status: s.End.Status, Reason: s.End.Reason, Text: text}
	why := ""
	switch {
	case s.End.Reason == run.MaxDuration:
		why = fmt.Sprintf("%s was ended after %s, which is the most time that it has.", o.To.Name, milliseconds(o.Timeout))
	case s.End.Status == run.Cancelled:
		why = o.To.Name + " was interrupted."
	case s.End.Status != run.Completed:
		why = fmt.Sprintf("%s did not come to the end of its work (%s): %s", o.To.Name, s.End.Reason, s.End.Message)
	case text == "":
		why = o.To.Name + " has ended without an answer."
	}
	if why != "" && text != "" {
		text = why + " What it said last: " + text
	} else if why != "" {
		text = why
	}
	out := said(c, text, why != "")
	out.Below, out.Left = run.Spent{Usage: s.AllUsage(), Cost: s.Spent()}, &told
	return out, nil
}

// lastText is what a run said last.
func lastText(s *run.State) (text string) {
	for i := range s.Output {
		if m := s.Output[i].Message; m != nil {
			text = model.Joined(m.Parts)
		}
	}
	return text
}
