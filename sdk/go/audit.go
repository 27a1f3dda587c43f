package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Audit lists the newest audit rows that query selects, at most limit; 0 is for all of them.
func (c *Client) Audit(ctx context.Context, tenant string, query url.Values, limit int) ([]AuditRow, error) {
	return list[AuditRow](ctx, c, under(admin, "tenants", tenant, "audit"), query, limit)
}

// ExportAudit writes audit rows to w as NDJSON.
func (c *Client) ExportAudit(ctx context.Context, tenant string, query url.Values, w io.Writer) error {
	return c.downloadAs(ctx, w, under(admin, "tenants", tenant, "audit", "export"), query, mediaNDJSON)
}

// AuditTrails lists tenants that have an audit trail, also those that are not on record any more.
func (c *Client) AuditTrails(ctx context.Context) ([]AuditTrail, error) {
	return list[AuditTrail](ctx, c, under(admin, "audit", "trails"), nil, 0)
}

// VerifyAudit checks a tenant's audit trail.
func (c *Client) VerifyAudit(ctx context.Context, tenant string, in AuditCheck) (AuditReport, error) {
	return call[AuditReport](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "audit", "verify"), nil, in)
}
