package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
)

// What sandboxes are made ahead for after a start: kinds that executions which ended
// within warmUpWithin have used, the newest warmUpUses of them.
const (
	warmUpWithin = 24 * time.Hour
	warmUpUses   = 16
)

// warmUp has sandboxes made ahead for environments that were in use before this start:
// the pool of a new process knows only the configured environment. It waits until that
// one has all its sandboxes. The record of executions says what was in use; the keys and
// environments of now decide what is made, so nothing is made for what was deleted or
// may not run any more.
func (m *recoveryModule) warmUp(ctx context.Context) {
	if m.cfg.Settings.Pool(config.ThisMachine()).Others == 0 || m.engine.AwaitFull(ctx) != nil {
		return
	}
	uses, err := m.records.db.Executions().Recent(ctx, warmUpWithin, warmUpUses)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("cannot read which environments were in use before; their first executions start cold", "error", err)
		}
		return
	}
	expected := 0
	for _, u := range uses {
		caller, err := m.records.authority.Holder(ctx, u.Tenant, u.Key)
		if err == nil {
			job, refused := m.gateway.Expected(&caller, u)
			if err = refused; err == nil {
				var n int
				n, err = m.engine.Expect(ctx, &job, u.Last)
				expected += n
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.log.Debug("nothing is made ahead for what was in use before", "tenant", u.Tenant, "environment", u.Environment, "language", u.Language, "error", err)
		}
	}
	if expected == 0 {
		return
	}
	m.log.Info("making sandboxes ahead for environments that were in use before", "uses", len(uses), "sandboxes", expected)
}
