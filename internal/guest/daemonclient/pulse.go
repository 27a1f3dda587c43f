package daemonclient

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// schedulePing has the guest asked for signs of life from now on, for as long as anything
// is under way. c.mu is held.
func (c *Client) schedulePing() {
	if c.pulse == nil && c.all != nil {
		c.pulse = time.AfterFunc(c.timeouts.Pulse, c.ping)
	}
}

// ping asks for a sign of life, if a caller waits for the guest.
func (c *Client) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulse = nil
	if c.all == nil || len(c.all) == len(c.idle) && len(c.queue) == 0 {
		return
	}
	if c.frozen {
		c.schedulePing()
		return
	}
	c.wait.Go(func() {
		began := time.Now()
		if !c.alive() && !c.wasFrozen(began) {
			c.fail(errSilent)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.schedulePing()
	})
}

// SetFrozen says whether the sandbox is frozen: it gives no sign of
// life meanwhile.
func (c *Client) SetFrozen(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != still {
		c.frozen, c.frozenChanged = still, time.Now()
	}
}

// wasFrozen reports whether the sandbox was frozen at some time since then.
func (c *Client) wasFrozen(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen || c.frozenChanged.After(since)
}

// noProcess is what no process is called: every guest daemon knows at once that there is none.
const noProcess = "-"

// alive reports whether the guest says anything in time.
func (c *Client) alive() bool {
	within := cmp.Or(c.timeouts.Sign, c.timeouts.Pulse)
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, errSilent)
	defer cancel()
	x, err := c.askFor(ctx, proto.Request{Process: &proto.Name{ID: noProcess}}, true)
	if err == nil {
		err = x.Flush()
	}
	if err == nil {
		if _, err = x.answer(within); err == nil {
			x.finish()
			return true
		}
	}
	if x != nil {
		err = x.failed(err)
	}
	return !errors.Is(err, ErrSilent) // else the conversation has an end of its own
}
