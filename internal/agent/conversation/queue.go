package conversation

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

const (
	lookEvery = 2 * time.Second // for turns that other processes ended, or started and left
	atOnce    = 64              // sessions that one query reads
)

// Wake says that a queued turn may be ready.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run starts queued turns, and ends waits for clients that took too long, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for ctx.Err() == nil {
		if err := errors.Join(s.expire(ctx), s.startQueued(ctx)); err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot start queued turns of sessions; retrying", "error", err)
		}
		select {
		case <-s.wake:
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

func (s *Service) startQueued(ctx context.Context) error {
	ready, err := s.Store.Ready(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for i := range ready {
		errs = append(errs, s.dequeue(ctx, &ready[i]))
	}
	return errors.Join(errs...)
}

// dequeue starts a queued turn.
func (s *Service) dequeue(ctx context.Context, q *session.Queued) (err error) {
	turn := q.Request.Turn
	if turn.After, err = s.Store.Window(ctx, session.ID(turn.Session), turn.Until); err != nil {
		return err
	}
	if turn.Spent, err = s.Store.Total(ctx, q.Run.Tenant, session.ID(turn.Session)); err != nil {
		return err
	}
	if q.Now != q.Speaker { // an earlier turn moved the conversation to another agent
		to := run.Member{Agent: string(q.Now.Agent), Version: q.Now.Version}
		asked, err := s.Plan(ctx, &handoff.Ask{Run: &q.Run, To: to, Mode: agent.Swarm})
		if err != nil {
			return err
		}
		(&run.Move{To: to, Request: asked}).Onto(&q.Request)
	}
	_, err = s.Runs.Begin(ctx, &q.Run, &q.Request, s.MaxUnderWay, nil)
	switch fault.KindOf(err) {
	case fault.Conflict, fault.NotFound, fault.Exhausted: // another process was faster, it is gone, or it waits for room
		return nil
	}
	return err
}

// expire ends the waits for clients that took too long. If an answer comes at the same moment, the
// store takes one of the two.
func (s *Service) expire(ctx context.Context) error {
	late, err := s.Store.Expired(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for i := range late {
		err := s.expireCalls(ctx, &late[i])
		if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// expireCalls ends the wait of a session.
func (s *Service) expireCalls(ctx context.Context, of *session.Session) error {
	calls, err := s.Store.Calls(ctx, of.Tenant, of.ID)
	if err != nil || len(calls) == 0 {
		return err
	}
	answers := session.Expire(calls, of.Until)
	for i := range answers {
		asked, err := s.Store.After(ctx, of.Tenant, of.ID, answers[i].Of-1, 1)
		if err != nil {
			return err
		}
		if len(asked) > 0 && asked[0].Tool != nil {
			answers[i].Server = asked[0].Tool.Server
		}
	}
	if err := s.Store.Answer(ctx, of, answers, true); err != nil {
		return err
	}
	s.Told()
	return nil
}
