package atoll

import (
	"context"
	"net/url"
)

// Activity lists who ran what in the key's tenant, newest first, at most limit entries; 0 is for
// all of them. query has the filters of GET /v1/activity.
func (c *Client) Activity(ctx context.Context, query url.Values, limit int) ([]Activity, error) {
	return list[Activity](ctx, c, "/v1/activity", query, limit)
}

// TenantActivity lists the same of any tenant. It takes an admin key.
func (c *Client) TenantActivity(ctx context.Context, tenant string, query url.Values, limit int) ([]Activity, error) {
	return list[Activity](ctx, c, under(admin, "tenants", tenant, "activity"), query, limit)
}
