package atoll

import (
	"context"
	"net/http"
)

// Plans lists plans.
func (c *Client) Plans() *Pager[Plan] {
	return &Pager[Plan]{c: c, path: under(admin, "plans")}
}

// Plan returns a plan.
func (c *Client) Plan(ctx context.Context, name string) (Plan, error) {
	return call[Plan](ctx, c, http.MethodGet, under(admin, "plans", name), nil, nil)
}

// PutPlan creates or replaces a plan.
func (c *Client) PutPlan(ctx context.Context, name string, in PlanBounds) (Plan, error) {
	return call[Plan](ctx, c, http.MethodPut, under(admin, "plans", name), nil, in)
}

// DeletePlan deletes a plan.
func (c *Client) DeletePlan(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "plans", name), nil)
}
