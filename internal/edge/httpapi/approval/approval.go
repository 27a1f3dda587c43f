// Package approval serves the inbox of tool calls that need a decision.
package approval

import (
	"context"
	"net/http"

	service "github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve approvals.
type Handlers struct {
	Service *service.Service
	// Within returns a caller in an environment of its tenant, as a tenant.Authority does. The model may
	// have learned the arguments of a call in another environment than the caller's.
	Within func(ctx context.Context, p tenant.Principal, environment string) (tenant.Principal, error)
	// Cover redacts the secrets of a caller and its environment.
	Cover func(p *tenant.Principal, text string) (string, error)
}

// Operations returns the operations of /v1/approvals.
func (h *Handlers) Operations() []httpapi.Operation {
	const one = "/v1/approvals/{approval_id}"
	id := httpapi.Param{Name: "approval_id", In: httpapi.InPath, Pattern: "^apr_[0-9a-f]{32}$", Doc: "The id of the approval."}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the approval does not exist, or it belongs to another tenant.")
	statuses := []string{"all"}
	for _, s := range approval.Statuses {
		statuses = append(statuses, string(s))
	}
	ops := []httpapi.Operation{
		{
			Method: http.MethodGet, Path: "/v1/approvals", ID: "listApprovals", Summary: "List tool calls that wait for a decision, newest first", Scope: tenant.ScopeRead,
			Description: "Lists the calls of all sessions and responses of the tenant. `status` selects decided calls instead. Atoll keeps an approval as long as its session or response.",
			Params: append([]httpapi.Param{
				{Name: "status", Enum: statuses, Doc: "pending if omitted."}, {Name: "agent", Doc: "The id of the agent.", Max: 64},
				{Name: "session_id", Doc: "The session.", Max: 64}, {Name: "response_id", Doc: "The response.", Max: 64},
			}, httpapi.PageParams(50, 100)...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Approval]{}, "A page.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getApproval", Summary: "Show an approval", Scope: tenant.ScopeRead,
			Description: "The approval names the tool, the caller, the deadline and the decision.",
			Params:      []httpapi.Param{id}, Answers: []httpapi.Answer{httpapi.OK(Approval{}, "The approval."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodPost, Path: one, ID: "decideApproval", Summary: "Approve or deny a tool call", Scope: tenant.ScopeExecute,
			Description: "Equivalent to a `tool_confirmation` in the session, or an `mcp_approval_response` to the response. After the last decision on a model's answer, the turn continues, or a new response continues this one in the background: `continued_by` names it. If a limit or the budget delays the new response, `continued_by` is null at first, and Atoll starts the response as soon as it can, for up to a day. " +
				"A browser token requires the right `confirm`.",
			Params: []httpapi.Param{id}, Body: httpapi.JSON(Decision{Approve: new(false), Reason: new("Ask the customer first.")}),
			Answers: []httpapi.Answer{
				httpapi.OK(Approval{}, "The decided approval."), unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: the approval is already decided, has expired, or belongs to another environment than the key."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a rate or another limit of the plan, or the budget; Retry-After says until when."),
			},
			Serve: httpapi.Takes(h.decide),
		},
	}
	for i := range ops {
		ops[i].Tag = "approvals"
	}
	return ops
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Approval], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := approval.Filter{
		Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Tenant: c.Caller.Tenant.ID, Status: approval.Pending,
		Agent: c.Text("agent"), Session: c.Text("session_id"), Run: runOf(c.Text("response_id")),
	}
	if text := c.Text("status"); text == "all" {
		f.Status = ""
	} else if text != "" {
		f.Status = approval.Status(text)
	}
	page, next, err := h.Service.Store.List(c.Context(), f)
	out = httpapi.Page[Approval]{Data: make([]Approval, len(page)), NextPage: httpapi.OrNull(next)}
	in := callers{}
	for i := range page {
		if out.Data[i], err = h.wire(c, &page[i], in); err != nil {
			return out, err
		}
	}
	return out, err
}

func (h *Handlers) get(c *httpapi.Call) (out Approval, err error) {
	a, err := h.Service.Find(c.Context(), c.Caller.Tenant.ID, approval.ID(c.Path("approval_id")))
	if err != nil {
		return out, err
	}
	return h.wire(c, a, callers{})
}

func (h *Handlers) decide(c *httpapi.Call, in *Decision) (out Approval, err error) {
	d := approval.Decision{Approve: *in.Approve, By: c.Caller.Key.ID}
	if in.Reason != nil {
		if d.Reason = *in.Reason; len(d.Reason) > session.MaxReason {
			return out, httpapi.Invalid("reason must be a text of at most %d bytes", session.MaxReason)
		}
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	a, err := h.Service.Decide(ctx, c.Starter(), approval.ID(c.Path("approval_id")), d)
	if err != nil {
		return out, err
	}
	return h.wire(c, a, callers{})
}
