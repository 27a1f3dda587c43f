package breaker_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func open(t *testing.T) *breaker.Breakers {
	t.Helper()
	db := storetest.SQLite(t)
	storetest.Operator(t, db)
	b, err := breaker.New(db.Breakers(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefusalsSayUntilWhen(t *testing.T) {
	b := open(t)
	one, none := int64(1), int64(0)
	for _, c := range []struct {
		own       breaker.Overrides
		dimension string
		says      string
	}{
		{breaker.Overrides{TenantDaily: &none}, "tenant_daily", "the operator has disabled"},
		{breaker.Overrides{AgentHourly: &none}, "agent_hourly", "the operator has disabled"},
		{breaker.Overrides{TenantDaily: &one, AgentHourly: &one}, "", ""},
		{breaker.Overrides{TenantDaily: &one}, "tenant_daily", "the tenant's daily cap of 1 calls is reached; please try again at 00:00 UTC"},
		{breaker.Overrides{AgentHourly: &one}, "agent_hourly", "the agent's hourly cap of 1 calls is reached; please try again at "},
	} {
		err := b.Pass(t.Context(), "ten_1", "agent", c.own)
		if c.dimension == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Exhausted || f.Dimension != c.dimension || !strings.Contains(f.Msg, c.says) || time.Until(f.ResetsAt) <= 0 || f.ResetsAt.Location() != time.UTC {
			t.Errorf("got %+v, want %s", err, c.dimension)
		}
	}
}

func TestCapsChangeWhileCallsCome(t *testing.T) {
	b := open(t)
	ten, hundred := int64(10), int64(100)
	if _, err := b.Change(t.Context(), "key_1", nil, &hundred); err != nil {
		t.Fatal(err)
	}
	after, err := b.Change(t.Context(), "key_1", &ten, nil)
	if now, again := b.Caps(t.Context()); err != nil || again != nil || after != now || now != (breaker.Caps{TenantDaily: 10, AgentHourly: 100}) {
		t.Errorf("got %+v and %+v, %v %v", after, now, err, again)
	}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if b.Pass(t.Context(), "ten_1", "agent", breaker.Overrides{}) == nil {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 10 {
		t.Errorf("%d passed", passed.Load())
	}
	eleven := int64(11)
	if _, err := b.Change(t.Context(), "key_1", &eleven, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Pass(t.Context(), "ten_1", "agent", breaker.Overrides{}); err != nil {
		t.Errorf("a raised cap is not in force: %v", err)
	}
	if err := b.Pass(t.Context(), "ten_1", "agent", breaker.Overrides{}); err == nil {
		t.Error("the call after the cap passed")
	}
}
