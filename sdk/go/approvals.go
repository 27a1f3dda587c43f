package atoll

import (
	"context"
	"net/http"
	"net/url"
)

const approvals = "/v1/approvals"

// Approvals lists tool calls that wait for a decision, newest first, at most limit; 0 is for all
// of them. query has status (pending if left out, or all), agent, session_id and response_id.
func (c *Client) Approvals(ctx context.Context, query url.Values, limit int) ([]Approval, error) {
	return list[Approval](ctx, c, approvals, query, limit)
}

// Approval shows a tool call that waits for a decision, or had one.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	return call[Approval](ctx, c, http.MethodGet, under(approvals, id), nil, nil)
}

// DecideApproval approves or denies a tool call.
func (c *Client) DecideApproval(ctx context.Context, id string, in Decision) (Approval, error) {
	return call[Approval](ctx, c, http.MethodPost, under(approvals, id), nil, in)
}
