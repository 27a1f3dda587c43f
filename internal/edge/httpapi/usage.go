package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// maxUsageRange is the longest time that one summary covers.
const maxUsageRange = 400 * 24 * time.Hour

// getUsage sums up what the caller's tenant has used.
func (s *Server) getUsage(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "since", "before")
	if err != nil {
		return err
	}
	body, err := usageOf(r.Context(), s.usage, caller.Tenant, q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, body)
}

// usageOf sums up what a tenant has used in the time that a query names.
func usageOf(ctx context.Context, ledger UsageReader, t tenant.Tenant, q url.Values) (*Usage, error) {
	since, before, err := querySpan(q)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	if before.IsZero() {
		before = now
	}
	if since.IsZero() {
		since = time.Date(before.Year(), before.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	if !since.Before(before) || before.Sub(since) > maxUsageRange {
		return nil, invalid("since must be earlier than before, by at most %d days", maxUsageRange/(24*time.Hour))
	}
	days, err := ledger.Summary(ctx, t.ID, since, before)
	if err != nil {
		return nil, err
	}
	used, err := ledger.Month(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	body := &Usage{
		Since: since, Before: before, Days: make([]UsageDay, len(days)),
		Month: UsageMonth{Credits: used, ResetsAt: month.AddDate(0, 1, 0)},
	}
	for i, d := range days {
		body.Days[i] = UsageDay{Date: d.Date.Format(time.DateOnly), Source: d.Source, UsageAmounts: amounts(d)}
		body.Totals.add(body.Days[i].UsageAmounts)
	}
	if t.MonthlyCredits > 0 {
		body.Month.Budget = &t.MonthlyCredits
	}
	return body, nil
}

func amounts(d usage.Day) UsageAmounts {
	return UsageAmounts{d.Calls, d.Sessions, d.Seconds, d.CPUSeconds, d.GiBSeconds, d.BytesOut, d.Credits}
}

func (a *UsageAmounts) add(b UsageAmounts) {
	a.Calls += b.Calls
	a.Sessions += b.Sessions
	a.Seconds += b.Seconds
	a.CPUSeconds += b.CPUSeconds
	a.GiBSeconds += b.GiBSeconds
	a.BytesOut += b.BytesOut
	a.Credits += b.Credits
}
