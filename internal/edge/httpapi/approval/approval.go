// Package approval serves the inbox of tool calls that wait for a decision.
package approval

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	coresession "github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/edge/httpapi/session"
)

// Handlers serve approvals.
type Handlers struct {
	Store     approval.Store
	Sessions  *session.Handlers
	Responses *response.Handlers
	// Cover covers secrets in arguments.
	Cover func(p *tenant.Principal, text string) (string, error)
}

// Operations are those of /v1/approvals.
func (h *Handlers) Operations() []httpapi.Operation {
	const one = "/v1/approvals/{approval_id}"
	id := httpapi.Param{Name: "approval_id", In: httpapi.InPath, Pattern: "^apr_[0-9a-f]{32}$", Doc: "The id of the approval."}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: there is no such approval, or it belongs to another tenant.")
	statuses := []string{"all"}
	for _, s := range approval.Statuses {
		statuses = append(statuses, string(s))
	}
	ops := []httpapi.Operation{
		{
			Method: http.MethodGet, Path: "/v1/approvals", ID: "listApprovals", Summary: "List tool calls that wait for a decision, newest first", Scope: tenant.ScopeRead,
			Description: "Of all sessions and responses of the tenant. `status` lists those that were decided. An approval stays as long as its session or response.",
			Params: append([]httpapi.Param{
				{Name: "status", Enum: statuses, Doc: "pending if left out."}, {Name: "agent", Doc: "The id of the agent.", Max: 64},
				{Name: "session_id", Doc: "The session.", Max: 64}, {Name: "response_id", Doc: "The response.", Max: 64},
			}, httpapi.PageParams(50, 100)...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Approval]{}, "A page.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getApproval", Summary: "Show a tool call that waits for a decision, or had one", Scope: tenant.ScopeRead,
			Description: "What would be called, by whom, until when, and how it was decided.",
			Params:      []httpapi.Param{id}, Answers: []httpapi.Answer{httpapi.OK(Approval{}, "The approval."), unknown}, Serve: httpapi.Returns(h.get),
		},
		{
			Method: http.MethodPost, Path: one, ID: "decideApproval", Summary: "Approve or deny a tool call", Scope: tenant.ScopeExecute,
			Description: "The same as a `tool_confirmation` in the session, or an `mcp_approval_response` to the response. Once no other call of the same answer waits, the turn goes on, or another response continues this one in the background: `continued_by` names it. " +
				"A browser token needs the right `confirm`.",
			Params: []httpapi.Param{id}, Body: httpapi.JSON(Decision{Approve: new(false), Reason: new("Ask the customer first.")}),
			Answers: []httpapi.Answer{
				httpapi.OK(Approval{}, "The approval, decided."), unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: it is decided already, has expired, or is of another environment than the key's."),
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
	page, next, err := h.Store.List(c.Context(), f)
	out = httpapi.Page[Approval]{Data: make([]Approval, len(page)), NextPage: httpapi.OrNull(next)}
	for i := range page {
		if out.Data[i], err = h.wire(c, &page[i]); err != nil {
			return out, err
		}
	}
	return out, err
}

func (h *Handlers) find(c *httpapi.Call) (*approval.Approval, error) {
	id := approval.ID(c.Path("approval_id"))
	if !id.Valid() {
		return nil, approval.ErrNotFound
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, id)
}

func (h *Handlers) get(c *httpapi.Call) (out Approval, err error) {
	a, err := h.find(c)
	if err != nil {
		return out, err
	}
	return h.wire(c, a)
}

func (h *Handlers) decide(c *httpapi.Call, in *Decision) (out Approval, err error) {
	if err := c.Caller.MayConfirm(); err != nil {
		return out, err
	}
	d := approval.Decision{Approve: *in.Approve, By: c.Caller.Key.ID}
	if in.Reason != nil {
		if d.Reason = *in.Reason; len(d.Reason) > coresession.MaxReason {
			return out, httpapi.Invalid("reason must be a text of at most %d bytes", coresession.MaxReason)
		}
	}
	a, err := h.find(c)
	if err != nil {
		return out, err
	}
	if a.Session != "" {
		err = h.inSession(c, a, d)
	} else {
		err = h.inResponse(c, a, d)
	}
	if err != nil {
		return out, err
	}
	return h.get(c)
}

// inSession answers the call of a session as its client does.
func (h *Handlers) inSession(c *httpapi.Call, a *approval.Approval, d approval.Decision) error {
	if a.Status != approval.Pending {
		return approval.ErrDecided
	}
	s, err := h.Sessions.Store.Get(c.Context(), a.Tenant, coresession.ID(a.Session))
	if err != nil {
		return err
	}
	_, err = h.Sessions.Take(c, s, &session.Batch{Answers: []session.Answer{{Of: session.EventID(s.ID, a.Of), Approve: &d.Approve, Reason: d.Reason}}})
	return err
}

// inResponse notes a decision. With the last one of a response another response begins.
func (h *Handlers) inResponse(c *httpapi.Call, a *approval.Approval, d approval.Decision) error {
	if a.Environment != c.Caller.Environment.ID {
		return response.ErrElsewhere
	}
	all, err := h.Store.Decide(c.Context(), a.Tenant, a.ID, d)
	if err != nil {
		return err
	}
	said := make([]run.Said, len(all))
	for i := range all {
		switch one := &all[i]; one.Status {
		case approval.Pending:
			return nil
		case approval.Approved, approval.Denied:
			said[i] = run.Said{Item: one.Item, Tool: one.Tool, Approve: one.Status == approval.Approved, Reason: one.Reason, Noted: true}
		default:
			return approval.ErrDecided
		}
	}
	_, err = h.Responses.Resume(c, a.Run, said)
	if fault.KindOf(err) == fault.Conflict {
		if now, failed := h.Store.Get(c.Context(), a.Tenant, a.ID); failed == nil && now.Next != "" {
			return nil // another decision came at the same moment, and its caller was faster
		}
	}
	return err
}
