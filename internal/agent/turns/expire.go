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
	late, err := t.cfg.Store.Expired(ctx, atOnce)
	if err != nil {
		return err
	}
	var errs []error
	for i := range late {
		s := &late[i]
		calls, err := t.cfg.Store.Calls(ctx, s.Tenant, s.ID)
		if err == nil && len(calls) > 0 {
			err = t.cfg.Store.Answer(ctx, s, session.Expire(calls), true)
		}
		if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
