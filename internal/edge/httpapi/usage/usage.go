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

// Tenants finds tenants and plans; a *tenant.Admin does.
type Tenants interface {
	Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error)
	Plan(ctx context.Context, name string) (tenant.Plan, error)
}

// Handlers serve what tenants have used.
type Handlers struct {
	Ledger  usage.Ledger
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

// of shows what a tenant has used in the time that the query of c names, and what it keeps now.
func (h *Handlers) of(c *httpapi.Call, t tenant.Tenant, p tenant.Plan) (*Usage, error) {
	f := usage.GroupFilter{Tenant: t.ID, Sessions: c.Text("group_by") == "session", Agent: c.Text("agent"), Session: c.Text("session_id")}
	var err error
	if f.Since, f.Before, err = c.Span(); err != nil {
		return nil, err
	}
	if !c.Has("group_by") && (c.Has("agent") || c.Has("session_id")) {
		return nil, httpapi.Invalid("agent and session_id choose groups: add group_by=agent or group_by=session")
	}
	r, err := usage.NewReport(c.Context(), h.Ledger, f, c.Has("group_by"), h.Keep)
	if err != nil {
		return nil, err
	}
	body := &Usage{
		Since: r.Since, Before: r.Before, Totals: amounts(r.Total), Outputs: outputs(r.Kept, p),
		Days: httpapi.Each(r.Days, func(d usage.Day) UsageDay {
			return UsageDay{Date: d.Date.Format(time.DateOnly), Source: d.Source, Name: d.Name, UsageAmounts: amounts(d)}
		}),
		Month: UsageMonth{Credits: r.MonthCredits, Cost: r.MonthCost.Dollars(), ResetsAt: r.MonthEnds},
	}
	if c.Has("group_by") {
		body.Groups = httpapi.Each(r.Groups, func(g usage.Group) UsageGroup { return UsageGroup{g.Agent, g.Session, amounts(g.Day)} })
	}
	if t.MonthlyCredits > 0 {
		body.Month.Budget = &t.MonthlyCredits
	}
	if t.MonthlyCost > 0 {
		body.Month.CostBudget = &t.MonthlyCost
	}
	return body, nil
}

func amounts(d usage.Day) UsageAmounts {
	return UsageAmounts{
		d.Calls, d.Sessions, d.Seconds, d.CPUSeconds, d.GiBSeconds, d.BytesOut, d.Credits,
		d.Tokens.Input, d.Tokens.CacheRead, d.Tokens.CacheWrite, d.Tokens.Output, d.Tokens.Reasoning, d.Tokens.Estimated, d.Cost.Dollars(),
	}
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
