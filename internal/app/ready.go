package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// readyTimeout is how long a part may take to answer before it counts as away.
const readyTimeout = 5 * time.Second

// filling is what a start lacks for a while.
const filling = "sandboxes"

// readiness knows what keeps executions from running.
type readiness struct {
	log          *slog.Logger
	disk         *diskModule
	records      *recordsModule
	bus          *busModule
	installation *installationModule
	control      *controlModule
	engine       *engineModule

	lacking atomic.Pointer[string] // unready parts in the last check, for the log
}

// part is a part of the server, and why it is not ready.
type part struct {
	name string
	err  error
}

// parts checks the parts of the server's role.
func (c *readiness) parts(ctx context.Context) []part {
	all := []part{{"bus", c.bus.Ready()}, {"disk", c.disk.Admit()}}
	if c.records != nil {
		all = append(all, part{"database", errors.Join(c.records.db.Ping(ctx), c.installation.writable())}, part{"installation", c.installation.fits()})
	}
	if c.engine != nil {
		all = append(all, part{"records", c.control.writable()}, part{filling, c.engine.Ready(ctx)})
	}
	return all
}

// check reports what keeps executions from running now. The error is for
// any client, and so only says which parts it is; the log says why, when that
// changes.
func (c *readiness) check(asked context.Context) error {
	ctx, cancel := context.WithTimeout(asked, readyTimeout)
	defer cancel()
	var lacking []string
	var reasons []any
	for _, part := range c.parts(ctx) {
		if part.err != nil {
			lacking = append(lacking, part.name)
			reasons = append(reasons, part.name, part.err)
		}
	}
	if asked.Err() != nil { // the caller is gone, and the answer may be wrong
		return context.Cause(asked)
	}
	now := strings.Join(lacking, ", ")
	if before := c.lacking.Swap(&now); before == nil || *before != now {
		switch {
		case now == filling:
			c.log.Info("not ready", reasons...)
		case now != "":
			c.log.Warn("not ready", reasons...)
		case before != nil:
			c.log.Info("ready again")
		}
	}
	if now == "" {
		return nil
	}
	return fault.New(fault.Unavailable, "not ready: %s", now)
}
