package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestTrail(t *testing.T) {
	calls, asked := map[tenant.ID]int64{"full": 20, "near": 19, "unrated": 19_999}, map[tenant.ID]int{}
	trail := &ratelimit.Trail{Room: 2 * time.Second, Count: func(_ context.Context, id tenant.ID, within time.Duration) (int64, error) {
		if asked[id]++; within != 3*24*time.Hour {
			t.Errorf("the calls of %s are counted", within)
		}
		if id == "lost" {
			return 0, errors.New("no database")
		}
		return calls[id], nil
	}}
	caller := func(id tenant.ID, rate int64) *tenant.Principal {
		return &tenant.Principal{Tenant: tenant.Tenant{ID: id, AuditDays: 3}, Plan: tenant.Plan{Name: "small", MaxRequestRate: rate}}
	}
	for range 3 {
		for _, p := range []*tenant.Principal{caller("near", 10), caller("unrated", 0), caller("full", 11)} {
			if err := trail.Check(t.Context(), p); err != nil {
				t.Errorf("%s: %v", p.Tenant.ID, err)
			}
		}
		err := trail.Check(t.Context(), caller("full", 10))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Exhausted || f.Dimension != "audit_rows" || !strings.Contains(f.Msg, "20 calls") || time.Until(f.ResetsAt) > 24*time.Hour || time.Until(f.ResetsAt) <= 0 {
			t.Errorf("full: %v", err)
		}
	}
	if asked["full"] != 1 || asked["unrated"] != 1 {
		t.Errorf("the records were asked %v", asked)
	}
	if err := trail.Check(t.Context(), caller("lost", 10)); err == nil || fault.KindOf(err) == fault.Exhausted {
		t.Errorf("without a database: %v", err)
	}
	calls["many"] = 20_000
	if err := trail.Check(t.Context(), caller("many", 0)); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("of a plan without a rate: %v", err)
	}
	trail.Room = 0
	if err := trail.Check(t.Context(), caller("full", 10)); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}
