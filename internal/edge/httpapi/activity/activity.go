// Package activity serves the record of calls: the callers, their code and the results.
package activity

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/trail"
	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Names finds tenants, their keys and their environments; a *tenant.Admin does.
type Names interface {
	trail.Names
	Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error)
}

// Handlers serve /v1/activity.
type Handlers struct {
	Store activity.Store
	Names Names
}

// Operations list the activity of the caller's tenant, and that of any tenant for operators.
func (h *Handlers) Operations() []httpapi.Operation {
	kinds := make([]string, len(activity.Kinds))
	for i, k := range activity.Kinds {
		kinds[i] = string(k)
	}
	params := append([]httpapi.Param{
		{Name: "since", Type: httpapi.Time, Doc: "From this time on."}, {Name: "before", Type: httpapi.Time, Doc: "Before this time."},
		{Name: "key", Doc: "Id or name of the key. Includes calls with its tokens."}, {Name: "agent", Doc: "The id of the agent; for execute_code, the caller's name for it.", Max: 128},
		{Name: "session_id", Doc: "The session.", Max: 256}, {Name: "turn_id", Doc: "The turn of an agent's session, or the response.", Max: 64},
		{Name: "environment", Doc: "Id or name of the environment."}, {Name: "sandbox_id", Doc: "The id of the named sandbox.", Max: 64}, {Name: "thread_id", Doc: "The thread.", Max: 256},
		{Name: "kind", Enum: kinds, Doc: "The kind of call."}, {Name: "source", Doc: "The interface or tool that the caller used, such as execute, shell or process."},
		{Name: "status", Enum: []string{"running", "ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"}, Doc: "The result of the call."},
		{Name: "executed_code_hash", Doc: "SHA-256 of the code, command or path, in hexadecimal digits.", Pattern: "^[0-9a-f]{64}$"},
	}, httpapi.PageParams(100, activity.MaxPage)...)
	return append(httpapi.ForOperators(httpapi.Operation{
		Method: http.MethodGet, Path: "/v1/admin/tenants/{tenant}/activity", ID: "listTenantActivity", Summary: "List who ran what in a tenant, newest first", Description: "The same list as the tenant's `GET /v1/activity`.",
		Params: params, Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Activity]{}, "OK")}, Serve: httpapi.Returns(h.ofTenant),
	}), httpapi.Operation{
		Method: http.MethodGet, Path: "/v1/activity", ID: "listActivity", Tag: "activity", Summary: "List who ran what, newest first", Scope: tenant.ScopeRead,
		Description: "One entry for each execution, each call of a tool or a named sandbox, each model request and each decision on a tool call of the key's tenant. " +
			"The list includes running executions. An entry must match all given filters. Atoll keeps entries for the tenant's `audit_days`.",
		Params:  params,
		Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Activity]{}, "A page.")},
		Serve:   httpapi.Returns(func(c *httpapi.Call) (httpapi.Page[Activity], error) { return h.of(c, c.Caller.Tenant.ID) }),
	})
}

// ofTenant lists the activity of the tenant in the path.
func (h *Handlers) ofTenant(c *httpapi.Call) (out httpapi.Page[Activity], err error) {
	t, err := c.Tenant(h.Names.Tenant)
	if err != nil {
		return out, err
	}
	return h.of(c, t.ID)
}

// of returns the page of a tenant's activity that the query of c selects.
func (h *Handlers) of(c *httpapi.Call, of tenant.ID) (out httpapi.Page[Activity], err error) {
	f := activity.Filter{
		Tenant: of, Agent: c.Text("agent"), Session: c.Text("session_id"), Turn: c.Text("turn_id"), Sandbox: c.Text("sandbox_id"), Thread: c.Text("thread_id"),
		Kind: activity.Kind(c.Text("kind")), Source: c.Text("source"), Status: c.Text("status"), Limit: int(c.Int("limit")),
	}
	if f.Cursor, err = c.Cursor(); err != nil {
		return out, err
	}
	if f.Since, f.Before, err = c.Span(); err != nil {
		return out, err
	}
	q := trail.Query{HasSource: c.Has("source"), CodeSHA256: c.Text("executed_code_hash"), Key: c.Text("key"), Environment: c.Text("environment")}
	if err := q.Activity(c.Context(), h.Names, &f); err != nil {
		return out, err
	}
	page, next, err := h.Store.Activity(c.Context(), f)
	if err != nil {
		return out, err
	}
	out.Data, out.NextPage = make([]Activity, len(page)), httpapi.OrNull(next)
	for i := range page {
		out.Data[i] = activityOf(&page[i])
	}
	return out, nil
}
