package conversation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// turn is a turn of a session that has not started.
type turn struct {
	caller *admission.Caller // in the session's environment
	of     *session.Session
	part   *part // of the agent that speaks

	after  int64         // the event after which its conversation begins
	spent  run.Total     // by the turns before
	within time.Duration // for which calls wait for the client; 0 for no limit

	input    []model.Item
	answers  []run.Answer
	approved []run.Approved // calls that the turn begins with
	outcome  *run.Outcome   // of the last message, or of an earlier turn; nil for none
	check    *sandboxtool.Check
}

// plan returns a turn of a session, without what begins it.
func (s *Service) plan(ctx context.Context, caller *admission.Caller, of *session.Session) (*turn, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	in, err := s.work(ctx, caller.Principal, of)
	if err != nil {
		return nil, err
	}
	t := &turn{caller: caller.In(in), of: of}
	if t.part, err = s.partOf(ctx, of); err != nil {
		return nil, err
	}
	if err := ruleOf(in, t.part).asks(in); err != nil {
		return nil, err
	}
	if t.after, err = s.Store.Window(ctx, of.ID, of.Events); err != nil {
		return nil, err
	}
	t.spent, err = s.Store.Total(ctx, of.Tenant, of.ID)
	t.within = s.within(&t.part.agent.Definition.Policy)
	return t, err
}

// within returns how long calls wait for the client.
func (s *Service) within(p *agent.Policy) time.Duration {
	if p.Within > 0 {
		return time.Duration(p.Within) * time.Second
	}
	return s.Within
}

// prepare returns the run of a turn that the caller may start.
func (s *Service) prepare(ctx context.Context, t *turn) (*run.Run, *run.Request, error) {
	r, q, err := s.compose(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Gate.Open(); err != nil {
		return nil, nil, err
	}
	if err := s.Gate.Admit(ctx, t.caller, q.Models[0]); err != nil {
		return nil, nil, err
	}
	return r, q, s.prepareImage(ctx, t, q)
}

// prepareImage builds the image that the agent's skills need, and warns until it is ready.
func (s *Service) prepareImage(ctx context.Context, t *turn, q *run.Request) error {
	extras := sandboxtool.ExtrasOf(q)
	if len(extras) == 0 || s.Images == nil {
		return nil
	}
	making, err := s.Images.Prepare(ctx, t.caller.Environment.RunImage(), extras)
	if making != "" {
		q.WarnOfWait(run.Warning{Code: run.ImageBuilding, Message: making})
	}
	return err
}

// compose returns the run of a turn.
func (s *Service) compose(ctx context.Context, t *turn) (*run.Run, *run.Request, error) {
	r := &run.Run{
		ID: run.NewID(), Tenant: t.caller.Tenant.ID, Key: t.caller.Key.ID, Environment: t.caller.Environment.ID,
		Session: string(t.of.ID), Sandbox: t.of.Sandbox, Keep: s.Keep,
	}
	q, err := s.request(ctx, t.caller.Principal, t.of, t.part, r)
	if err != nil {
		return nil, nil, err
	}
	q.Input, q.Approved, q.Publish = t.input, t.approved, true
	q.Limits.Session = t.of.Left()
	q.Turn = &run.Turn{Session: r.Session, After: t.after, Until: t.of.Events, Spent: t.spent, Answers: t.answers, Within: t.within}
	if t.outcome == nil {
		return r, q, nil
	}
	if t.check != nil {
		if t.outcome.Check, err = sandboxtool.NewCheck(q.Tools, t.check); err != nil {
			return nil, nil, err
		}
	}
	if name := t.outcome.Model; name != "" {
		if err := s.Gate.CheckModel(ctx, r.Tenant, name); err != nil {
			return nil, nil, err
		}
	}
	q.Outcome = t.outcome
	return r, q, nil
}

// Preview returns what a turn that starts now asks the model, without the conversation.
func (s *Service) Preview(ctx context.Context, p *tenant.Principal, of *session.Session) (*run.Request, error) {
	t, err := s.plan(ctx, &admission.Caller{Principal: p}, of)
	if err != nil {
		return nil, err
	}
	_, q, err := s.compose(ctx, t)
	return q, err
}

// Recorded returns the number of items that a turn has recorded.
func (s *Service) Recorded(ctx context.Context, id run.ID) (int, error) {
	state, err := s.Runs.State(ctx, id)
	if err != nil {
		return 0, err
	}
	return len(state.Output), nil
}

// Follow passes the events of a turn to yield until the turn ends. It skips the deltas of the first
// recorded items. It returns nil if the published events are gone.
func (s *Service) Follow(ctx context.Context, t tenant.ID, id run.ID, recorded int, yield func(events []run.Event) error) error {
	err := s.Runs.Follow(ctx, t, id, func(events []run.Event) error {
		return yield(slices.DeleteFunc(events, func(e run.Event) bool { return e.Delta != nil && e.Delta.Index < recorded }))
	})
	if errors.Is(err, run.ErrNoEvents) {
		return nil
	}
	return err
}
