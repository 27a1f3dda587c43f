package atoll

import (
	"context"
	"net/http"
	"net/url"
)

const approvals = "/v1/approvals"

// Approvals lists tool calls that wait for a decision, newest first. query has status (pending by
// default, or all), agent, session_id and response_id.
func (c *Client) Approvals(query url.Values) *Pager[Approval] {
	return &Pager[Approval]{c: c, path: approvals, query: query}
}

// Approval returns a tool call that waits for a decision, or had one.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	return call[Approval](ctx, c, http.MethodGet, under(approvals, id), nil, nil)
}

// DecideApproval approves or denies a tool call.
func (c *Client) DecideApproval(ctx context.Context, id string, in Decision) (Approval, error) {
	return call[Approval](ctx, c, http.MethodPost, under(approvals, id), nil, in)
}
