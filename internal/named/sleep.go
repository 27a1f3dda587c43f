package named

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tenant"
)

// wake has a sleeping sandbox run again. The turn at e is held.
func (m *Manager) wake(ctx context.Context, e *entry, p *tenant.Principal) error {
	sb := m.current(e)
	live, err := m.cfg.Engine.Open(ctx, sb.recipe())
	if errors.Is(err, sandbox.ErrNotFound) {
		return errors.Join(m.lose(context.WithoutCancel(ctx), e, "its memory is gone"), m.lostError(e))
	}
	if err != nil {
		return err
	}
	if err := sb.move(Running, ""); err != nil {
		return errors.Join(err, live.Detach())
	}
	sb.MeteredAt = time.Now().UTC()
	if err := m.cfg.Store.Wake(ctx, sb, roomOf(p)); err != nil {
		return errors.Join(err, live.Detach())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.sb, e.live, e.used = sb, live, time.Now()
	return nil
}
