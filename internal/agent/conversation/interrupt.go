package conversation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Interrupt ends the turn that is under way, or the wait for answers. It returns before the turn has
// ended. A session that does neither stays as it is.
func (s *Service) Interrupt(ctx context.Context, p *tenant.Principal, id session.ID) (*session.Session, error) {
	of, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil || of.Run == "" && (of.Waits == 0 || of.Archived()) {
		return of, err
	}
	if _, err := s.stop(ctx, p, of); err != nil || of.Run != "" {
		return of, err
	}
	return s.Store.Get(ctx, of.Tenant, of.ID)
}

// stop ends the turn that is under way, or the wait for answers. added is the number of events that say
// so; 0 for a turn, whose process adds them.
func (s *Service) stop(ctx context.Context, p *tenant.Principal, of *session.Session) (added int64, err error) {
	if of.Run == "" {
		return s.giveUp(ctx, p, of)
	}
	err = s.Runs.Cancel(ctx, of.Tenant, of.Run)
	if fault.KindOf(err) == fault.Conflict { // it has ended
		err = nil
	}
	return 0, err
}

// giveUp ends the wait for answers: nothing makes the calls that wait, or that were approved and not
// made. added is the number of events that say so.
func (s *Service) giveUp(ctx context.Context, p *tenant.Principal, of *session.Session) (added int64, err error) {
	const why = "The user interrupted the session before this call was made."
	calls, err := s.Store.Calls(ctx, of.Tenant, of.ID)
	if err != nil {
		return 0, err
	}
	left, err := s.waiting(ctx, of)
	if err != nil {
		return 0, err
	}
	var answers []run.Answer
	for _, w := range calls {
		if w.Thread != "" && w.Approved {
			continue
		}
		e, err := s.call(ctx, of, calls, &Answer{Of: session.EventID(of.ID, w.Of)})
		if err != nil {
			return 0, err
		}
		a := Answer{Parts: textual(why), Failed: true}
		answer := a.to(&w, e, p.Key.ID)
		if w.Approve {
			answer.Decision = &run.Decision{Reason: run.Interrupted, Key: p.Key.ID, GivenUp: true}
		}
		answers = append(answers, answer)
	}
	answers = append(answers, session.GoneWith(calls, why)...)
	if err := s.Store.Answer(ctx, of, answers, true); err != nil {
		return 0, err
	}
	s.Told()
	s.free(ctx, p, of, left)
	return int64(len(run.AnswerEvents(1, time.Time{}, answers))) + 2, nil
}
