package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/tenant/tenanttest"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// testClock gives this process a clock that is days off the database's: what
// expires does so by the database's, which all processes share. SQLite has no
// other clock than its process.
func testClock(t *testing.T, open opener) {
	for _, off := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			ctx := t.Context()
			db := open(t)
			set := func(off time.Duration) {
				t.Helper()
				_, err := db.SQL().ExecContext(ctx, fmt.Sprintf(`CREATE OR REPLACE FUNCTION atoll_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
					SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (%d) $$`, off.Microseconds()))
				must(t, err)
			}
			set(off)
			now := func() time.Time { return time.Now().Add(off) } // by the database's clock

			of := tenanttest.Tenant(t, db.Tenants(), "a")
			env := tenant.Environment{ID: tenant.NewID("env"), Tenant: of.ID, Name: "main"}
			must(t, db.Tenants().CreateEnvironment(ctx, env))
			for name, after := range map[string]time.Duration{"living": time.Hour, "expired": -time.Minute} {
				at := now().Add(after)
				key, _ := tenanttest.Key(t, db.Tenants(), env, name, func(k *tenant.Key) { k.ExpiresAt = &at })
				_, left, err := db.Tenants().Principal(ctx, key.Hash)
				if after < 0 && fault.KindOf(err) != fault.NotFound {
					t.Errorf("an expired key: %v", err)
				}
				if after > 0 && (err != nil || left > after || left < after-time.Minute) {
					t.Errorf("a living key has %v left: %v", left, err)
				}
			}

			once := execution.Admission{IdempotencyKey: "k"}
			e := storetest.Execution(of.ID)
			_, err := db.Executions().Admit(ctx, e, once)
			must(t, err)
			earlier, err := db.Executions().Admit(ctx, storetest.Execution(of.ID), once)
			if err != nil || earlier == nil || earlier.TraceID != e.TraceID {
				t.Errorf("the key of a moment ago stands for %v, %v", earlier, err)
			}
			if n, err := db.Executions().PurgeKeys(ctx, 10); n != 0 || err != nil {
				t.Errorf("%d keys of a moment ago went, %v", n, err)
			}

			old := storetest.Execution(of.ID)
			old.CreatedAt = now().Add(-3 * time.Hour)
			_, err = db.Executions().Admit(ctx, old, execution.Admission{})
			must(t, err)
			r := storetest.Result(old)
			r.CompletedAt = now().Add(-2 * time.Hour)
			_, _, err = db.Executions().Conclude(ctx, r, follow)
			must(t, err)
			for keep, want := range map[time.Duration]int{time.Hour: 1, 3 * time.Hour: 0} {
				if gone, err := db.Executions().Expired(ctx, keep, 10); err != nil || len(gone) != want {
					t.Errorf("of what ended two hours ago %d are older than %v: %v", len(gone), keep, err)
				}
			}

			breach, err := db.Breakers().Count(ctx, of.ID, "agent", breaker.Caps{TenantDaily: 0, AgentHourly: 1})
			if must(t, err); breach == nil || !breach.ResetsAt.After(now()) || breach.ResetsAt.After(now().Add(24*time.Hour)) {
				t.Errorf("a breaker that resets within a day: %+v", breach)
			}

			must(t, db.Audit().Append(ctx, auditRow(of.ID))) // for a day
			must(t, sealAll(ctx, db, of.ID))
			if n, err := db.Audit().Purge(ctx, 10); n != 0 || err != nil {
				t.Errorf("%d audit rows went before their time: %v", n, err)
			}
			set(off + 25*time.Hour)
			if n, err := db.Audit().Purge(ctx, 10); n == 0 || err != nil {
				t.Errorf("no audit row went after its time: %v", err)
			}
			if n, err := db.Executions().PurgeKeys(ctx, 10); n != 1 || err != nil {
				t.Errorf("%d keys went after their day, %v", n, err)
			}
		})
	}
}
