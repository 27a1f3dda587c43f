package atoll

import (
	"net/url"
)

// Activity lists who ran what in the key's tenant, newest first. query has the filters of GET /v1/activity.
func (c *Client) Activity(query url.Values) *Pager[Activity] {
	return &Pager[Activity]{c: c, path: "/v1/activity", query: query}
}

// TenantActivity lists the same of any tenant. It takes an admin key.
func (c *Client) TenantActivity(tenant string, query url.Values) *Pager[Activity] {
	return &Pager[Activity]{c: c, path: under(admin, "tenants", tenant, "activity"), query: query}
}
