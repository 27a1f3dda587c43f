package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/execution/executiontest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/tenant/tenanttest"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// testTokenBounds: a token begins as many executions as it may, however many ask at a time,
// and what its runs are charged is charged to it.
func testTokenBounds(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	tenants := db.Tenants()
	of := tenanttest.Environment(t, tenants, tenanttest.Tenant(t, tenants, "a").ID, "e")
	key, _ := tenanttest.Key(t, tenants, of, "k")
	v := tenant.Token{ID: tenant.NewTokenID(key.ID), Tenant: of.Tenant, Key: key.ID, Hash: [32]byte{1}, Scopes: tenant.TokenScopes, MaxExecutions: 5, MaxCost: 700}
	if _, err := tenants.CreateToken(ctx, v, time.Hour, 10, time.Hour); err != nil {
		t.Fatal(err)
	}
	var admitted, refused atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := db.Executions().Admit(ctx, executiontest.New(of.Tenant, func(e *execution.Execution) { e.Key = v.ID }), execution.Admission{})
			f, limited := errors.AsType[*fault.Error](err)
			switch {
			case err == nil:
				admitted.Add(1)
			case limited && f.Dimension == tenant.DimensionTokenExecutions:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if admitted.Load() != 5 || refused.Load() != 15 {
		t.Errorf("of 20 executions %d were admitted and %d refused", admitted.Load(), refused.Load())
	}

	r := &run.Run{ID: run.NewID(), Tenant: of.Tenant, Key: v.ID, Environment: of.ID, Sandbox: "sbx_1", Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()}
	begun := run.Entry{Seq: 1, At: time.Now(), Begun: &run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, "x")}}}
	lease, err := db.Runs().Create(ctx, r, []run.Entry{begun}, "here", 0, nil)
	must(t, err)
	charge := func(id string, cost usage.Money) usage.Charge {
		return usage.Charge{ID: id, Tenant: of.Tenant, Key: v.ID, Kind: usage.Model, Name: "m", Calls: 1, Cost: cost, At: time.Now()}
	}
	must(t, db.Runs().Append(ctx, r.ID, lease, []run.Entry{{Seq: 2, At: time.Now(), Asked: &run.Asked{}}}, run.Trace{Charges: []usage.Charge{charge("1", 300), charge("2", 450)}}))
	used, most, err := tenants.TokenSpent(ctx, v.ID)
	must(t, err)
	if used != 750 || most != 700 {
		t.Errorf("spent %d of %d", used, most)
	}
}
