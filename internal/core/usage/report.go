package usage

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Ledger reads what tenants have used; a Store does.
type Ledger interface {
	Summary(ctx context.Context, tenant string, since, before time.Time) ([]Day, error)
	Groups(ctx context.Context, f GroupFilter) ([]Group, error)
	Month(ctx context.Context, tenant string) (credits float64, err error)
	MonthCost(ctx context.Context, tenant string) (Money, error)
	Kept(ctx context.Context, tenant string, keep time.Duration) (Kept, error)
}

// Report sums up what a tenant has used in [Since, Before), and shows the state of its budgets and
// storage now.
type Report struct {
	Since, Before time.Time
	Days          []Day
	Groups        []Group // nil unless requested
	Total         Day     // of Days; Calls counts only calls of interfaces
	MonthCredits  float64 // in the current calendar month in UTC
	MonthCost     Money
	MonthEnds     time.Time
	Kept          Kept
}

// maxReport is the longest time that a report covers.
const maxReport = 400 * 24 * time.Hour

// NewReport reads a tenant's report from l. A zero Before in f means now, and a zero Since the start
// of the month of Before. keep is how long ended executions are kept. The report has groups if
// grouped is set. A time that is too long returns an Invalid fault.
func NewReport(ctx context.Context, l Ledger, f GroupFilter, grouped bool, keep time.Duration) (r Report, err error) {
	now := time.Now().UTC()
	if f.Before.IsZero() {
		f.Before = now
	}
	if f.Since.IsZero() {
		f.Since = monthOf(f.Before)
	}
	if !f.Since.Before(f.Before) || f.Before.Sub(f.Since) > maxReport {
		return r, fault.New(fault.Invalid, "since must be earlier than before, by at most %d days", maxReport/(24*time.Hour))
	}
	r = Report{Since: f.Since, Before: f.Before, MonthEnds: monthOf(now).AddDate(0, 1, 0)}
	if r.Days, err = l.Summary(ctx, f.Tenant, f.Since, f.Before); err != nil {
		return r, err
	}
	if grouped {
		if r.Groups, err = l.Groups(ctx, f); err != nil {
			return r, err
		}
	}
	if r.MonthCredits, err = l.Month(ctx, f.Tenant); err != nil {
		return r, err
	}
	if r.Kept, err = l.Kept(ctx, f.Tenant, keep); err != nil {
		return r, err
	}
	if r.MonthCost, err = l.MonthCost(ctx, f.Tenant); err != nil {
		return r, err
	}
	for _, d := range r.Days {
		if d.charged() {
			d.Calls = 0 // a tool's call may be an execution, which is counted
		}
		r.Total.add(d)
	}
	return r, nil
}

// monthOf returns the start of a time's month in UTC.
func monthOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// charged reports whether d sums charges.
func (d *Day) charged() bool {
	return d.Source == string(Model) || d.Source == string(Tool) || d.Source == string(Window)
}

// add adds the amounts of another day.
func (d *Day) add(b Day) {
	d.Calls += b.Calls
	d.Sessions += b.Sessions
	d.Seconds += b.Seconds
	d.CPUSeconds += b.CPUSeconds
	d.GiBSeconds += b.GiBSeconds
	d.BytesOut += b.BytesOut
	d.Credits += b.Credits
	d.Tokens = d.Tokens.Plus(b.Tokens)
	d.Cost = d.Cost.Plus(b.Cost)
}
