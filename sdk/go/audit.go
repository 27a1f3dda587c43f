package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Audit lists the newest audit rows that query selects.
func (c *Client) Audit(tenant string, query url.Values) *Pager[AuditRow] {
	return &Pager[AuditRow]{c: c, path: under(admin, "tenants", tenant, "audit"), query: query}
}

// ExportAudit writes audit rows to w as NDJSON.
func (c *Client) ExportAudit(ctx context.Context, tenant string, query url.Values, w io.Writer) error {
	return c.downloadAs(ctx, w, under(admin, "tenants", tenant, "audit", "export"), query, mediaNDJSON)
}

// AuditTrails lists tenants that have an audit trail, including deleted tenants.
func (c *Client) AuditTrails() *Pager[AuditTrail] {
	return &Pager[AuditTrail]{c: c, path: under(admin, "audit", "trails")}
}

// VerifyAudit checks a tenant's audit trail.
func (c *Client) VerifyAudit(ctx context.Context, tenant string, in AuditCheck) (AuditReport, error) {
	return call[AuditReport](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "audit", "verify"), nil, in)
}
