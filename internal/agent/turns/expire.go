package turns

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
)

// expire ends the waits for clients that took too long. Of these ends and an answer that comes
// in the same moment the store takes one.
func (t *Turns) expire(ctx context.Context) error {
	if t.cfg.Approvals != nil {
		if _, err := t.cfg.Approvals.Expire(ctx, atOnce); err != nil {
			return err
		}
	}
	late, err := t.cfg.Store.Expired(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for i := range late {
		err := t.end(ctx, &late[i])
		if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// end ends the wait of a session.
func (t *Turns) end(ctx context.Context, s *session.Session) error {
	calls, err := t.cfg.Store.Calls(ctx, s.Tenant, s.ID)
	if err != nil || len(calls) == 0 {
		return err
	}
	answers := session.Expire(calls, s.Until)
	for i := range answers {
		asked, err := t.cfg.Store.After(ctx, s.Tenant, s.ID, answers[i].Of-1, 1)
		if err != nil {
			return err
		}
		if len(asked) > 0 && asked[0].Tool != nil {
			answers[i].Server = asked[0].Tool.Server
		}
	}
	if err := t.cfg.Store.Answer(ctx, s, answers, true); err != nil {
		return err
	}
	if t.cfg.Told != nil {
		t.cfg.Told()
	}
	return nil
}
