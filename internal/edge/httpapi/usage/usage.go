// Package usage serves the ledger of what tenants have used.
package usage

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Ledger is what tenants have used.
type Ledger interface {
	Summary(ctx context.Context, tenantID tenant.ID, since, before time.Time) ([]usage.Day, error)
	Groups(ctx context.Context, f usage.GroupFilter) ([]usage.Group, error)
	Month(ctx context.Context, tenantID tenant.ID) (credits float64, err error)
	MonthCost(ctx context.Context, tenantID tenant.ID) (usage.Money, error)
	Kept(ctx context.Context, tenantID tenant.ID, keep time.Duration) (usage.Kept, error)
}

// Tenants finds tenants and plans; a *tenant.Admin does.
type Tenants interface {
	Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error)
	Plan(ctx context.Context, name string) (tenant.Plan, error)
}

// Handlers serve what tenants have used.
type Handlers struct {
	Ledger  Ledger
	Tenants Tenants       // required by operators
	Keep    time.Duration // how long ended executions are kept
}

// Operations show the usage of the caller's tenant, and that of any tenant to operators.
func (h *Handlers) Operations() []httpapi.Operation {
	params := []httpapi.Param{
		{Name: "since", Type: httpapi.Time, Doc: "From this time on. Default: the start of before's month (UTC)."},
		{Name: "before", Type: httpapi.Time, Doc: "Before this time. Default: now."},
		{Name: "group_by", Enum: []string{"agent", "session"}, Doc: "Adds groups: the usage of each agent, or of each session of an agent."},
		{Name: "agent", Doc: "With group_by: only this agent.", Max: 128},
		{Name: "session_id", Doc: "With group_by: only this session.", Max: 256},
	}
	return append(httpapi.ForOperators(httpapi.Operation{
		Method: http.MethodGet, Path: "/v1/admin/tenants/{tenant}/usage", ID: "getTenantUsage", Summary: "Show a tenant's usage", Description: "The same as the tenant's `GET /v1/usage`: usage by day and interface, model or tool, with the state of the month's budgets.",
		Params: params, Answers: []httpapi.Answer{httpapi.OK(Usage{}, "OK")}, Serve: httpapi.Returns(h.ofTenant),
	}), httpapi.Operation{
		Method: http.MethodGet, Path: "/v1/usage", ID: "getUsage", Tag: "usage", Summary: "Show the tenant's usage", Description: "Days are in UTC; `since` and `before` select them. The figures come from the ledger, which also counts against budgets.", Scope: tenant.ScopeRead,
		Params:  params,
		Answers: []httpapi.Answer{httpapi.OK(Usage{}, "By day and interface, model or tool, with the state of the month's budgets.")},
		Serve:   httpapi.Returns(func(c *httpapi.Call) (*Usage, error) { return h.of(c, c.Caller.Tenant, c.Caller.Plan) }),
	})
}

// ofTenant shows the usage of the tenant in the path.
func (h *Handlers) ofTenant(c *httpapi.Call) (*Usage, error) {
	t, err := c.Tenant(h.Tenants.Tenant)
	if err != nil {
		return nil, err
	}
	p, err := h.Tenants.Plan(c.Context(), t.Plan)
	if err != nil {
		return nil, err
	}
	return h.of(c, t, p)
}

// groups returns the groups that the query of c requests; nil without group_by.
func (h *Handlers) groups(c *httpapi.Call, of tenant.ID, since, before time.Time) ([]UsageGroup, error) {
	if !c.Has("group_by") {
		if c.Has("agent") || c.Has("session_id") {
			return nil, httpapi.Invalid("agent and session_id choose groups: add group_by=agent or group_by=session")
		}
		return nil, nil
	}
	all, err := h.Ledger.Groups(c.Context(), usage.GroupFilter{
		Tenant: of, Sessions: c.Text("group_by") == "session", Agent: c.Text("agent"), Session: c.Text("session_id"), Since: since, Before: before,
	})
	return httpapi.Each(all, func(g usage.Group) UsageGroup { return UsageGroup{g.Agent, g.Session, amounts(g.Day)} }), err
}

// maxRange is the longest time that one summary covers.
const maxRange = 400 * 24 * time.Hour

// of sums up what a tenant has used in the time that the query of c names, and what it
// keeps now.
func (h *Handlers) of(c *httpapi.Call, t tenant.Tenant, p tenant.Plan) (*Usage, error) {
	since, before, err := c.Span()
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
	if !since.Before(before) || before.Sub(since) > maxRange {
		return nil, httpapi.Invalid("since must be earlier than before, by at most %d days", maxRange/(24*time.Hour))
	}
	days, err := h.Ledger.Summary(c.Context(), t.ID, since, before)
	if err != nil {
		return nil, err
	}
	groups, err := h.groups(c, t.ID, since, before)
	if err != nil {
		return nil, err
	}
	used, err := h.Ledger.Month(c.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	kept, err := h.Ledger.Kept(c.Context(), t.ID, h.Keep)
	if err != nil {
		return nil, err
	}
	cost, err := h.Ledger.MonthCost(c.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	body := &Usage{
		Since: since, Before: before, Days: make([]UsageDay, len(days)), Groups: groups,
		Month:   UsageMonth{Credits: used, Cost: cost.Dollars(), ResetsAt: month.AddDate(0, 1, 0)},
		Outputs: outputs(kept, p),
	}
	total := usage.Money(0)
	for i, d := range days {
		body.Days[i] = UsageDay{Date: d.Date.Format(time.DateOnly), Source: d.Source, Name: d.Name, UsageAmounts: amounts(d)}
		sum := body.Days[i].UsageAmounts
		total = total.Plus(d.Cost)
		if charged(d.Source) {
			sum.Calls = 0 // a tool's call may be an execution, which is counted
		}
		body.Totals.add(sum)
	}
	if t.MonthlyCredits > 0 {
		body.Month.Budget = &t.MonthlyCredits
	}
	if t.MonthlyCost > 0 {
		body.Month.CostBudget = &t.MonthlyCost
	}
	body.Totals.Cost = total.Dollars()
	return body, nil
}

func amounts(d usage.Day) UsageAmounts {
	return UsageAmounts{
		d.Calls, d.Sessions, d.Seconds, d.CPUSeconds, d.GiBSeconds, d.BytesOut, d.Credits,
		d.Tokens.Input, d.Tokens.CacheRead, d.Tokens.CacheWrite, d.Tokens.Output, d.Tokens.Reasoning, d.Tokens.Estimated, d.Cost.Dollars(),
	}
}

// charged reports whether a source is one of charges.
func charged(source string) bool {
	return source == string(usage.Model) || source == string(usage.Tool) || source == string(usage.Window)
}

func (a *UsageAmounts) add(b UsageAmounts) {
	a.Calls += b.Calls
	a.Sessions += b.Sessions
	a.Seconds += b.Seconds
	a.CPUSeconds += b.CPUSeconds
	a.GiBSeconds += b.GiBSeconds
	a.BytesOut += b.BytesOut
	a.Credits += b.Credits
	a.InputTokens += b.InputTokens
	a.CacheReadTokens += b.CacheReadTokens
	a.CacheWriteTokens += b.CacheWriteTokens
	a.OutputTokens += b.OutputTokens
	a.ReasoningTokens += b.ReasoningTokens
	a.EstimatedTokens += b.EstimatedTokens
}

func outputs(k usage.Kept, p tenant.Plan) UsageOutputs {
	out := UsageOutputs{Bytes: k.Bytes}
	if p.MaxOutputs > 0 {
		out.Limit = &p.MaxOutputs
	}
	if !k.ResetsAt.IsZero() {
		out.ResetsAt = &k.ResetsAt
	}
	return out
}
