package named

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// reopen takes over a sandbox that could not be when this process began, though it
// may live: for want of descriptors or memory, say. The turn at e is held.
func (m *Manager) reopen(ctx context.Context, e *entry) error {
	sb := m.current(e)
	opening, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	live, err := m.cfg.Engine.Open(opening, sb.recipe())
	if errors.Is(err, sandbox.ErrNotFound) {
		return errors.Join(m.lose(context.WithoutCancel(ctx), e, "it ended before the server could take it over"), m.lostError(e))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q cannot be taken over at the moment; nothing was run, retry later, or destroy it", sb.Name))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.live, e.used = live, time.Now()
	return nil
}
