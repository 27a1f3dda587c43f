package client

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// listen has the guest asked for signs of life from now on, for as long as anything
// is under way. c.mu is held.
func (c *Client) listen() {
	if c.pulse == nil && c.all != nil {
		c.pulse = time.AfterFunc(c.patience.Pulse, c.beat)
	}
}

// beat asks for a sign of life, if a caller waits for the guest.
func (c *Client) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulse = nil
	if c.all == nil || len(c.all) == len(c.idle) && len(c.queue) == 0 {
		return
	}
	if c.still {
		c.listen()
		return
	}
	c.wait.Go(func() {
		began := time.Now()
		if !c.alive() && !c.stood(began) {
			c.fail(errSilent)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.listen()
	})
}

// Rest says that the sandbox is made to stand still, or goes on: it gives no sign of
// life meanwhile.
func (c *Client) Rest(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.still != still {
		c.still, c.turned = still, time.Now()
	}
}

// stood reports whether the sandbox stood still at some time since then.
func (c *Client) stood(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.still || c.turned.After(since)
}

// noProcess is what no process is called: every guest daemon knows at once that there is none.
const noProcess = "-"

// alive reports whether the guest says anything in time.
func (c *Client) alive() bool {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.patience.Pulse, errSilent)
	defer cancel()
	x, err := c.askFor(ctx, proto.Request{Process: &proto.Name{ID: noProcess}}, true)
	if err == nil {
		err = x.Flush()
	}
	if err == nil {
		if _, err = x.answer(c.patience.Pulse); err == nil {
			x.over()
			return true
		}
	}
	if x != nil {
		err = x.failed(err)
	}
	return !errors.Is(err, ErrSilent) // else the conversation has an end of its own
}
