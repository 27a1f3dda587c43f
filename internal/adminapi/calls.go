package adminapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// at builds a path of names under /v1/admin.
func at(names ...string) string {
	path := "/v1/admin"
	for _, name := range names {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// Tenants lists tenants.
func (c *Client) Tenants(ctx context.Context) ([]httpapi.Tenant, error) {
	return list[httpapi.Tenant](ctx, c, at("tenants"), nil, 0)
}

// Tenant shows a tenant.
func (c *Client) Tenant(ctx context.Context, tenant string) (httpapi.Tenant, error) {
	return call[httpapi.Tenant](ctx, c, http.MethodGet, at("tenants", tenant), nil, nil)
}

// CreateTenant makes a tenant.
func (c *Client) CreateTenant(ctx context.Context, in httpapi.NewTenant) (httpapi.Tenant, error) {
	return call[httpapi.Tenant](ctx, c, http.MethodPost, at("tenants"), nil, in)
}

// ChangeTenant changes a tenant.
func (c *Client) ChangeTenant(ctx context.Context, tenant string, in httpapi.TenantChange) (httpapi.Tenant, error) {
	return call[httpapi.Tenant](ctx, c, http.MethodPatch, at("tenants", tenant), nil, in)
}

// PolicyEvents lists the changes to what a tenant may do.
func (c *Client) PolicyEvents(ctx context.Context, tenant string) ([]httpapi.PolicyEvent, error) {
	return list[httpapi.PolicyEvent](ctx, c, at("tenants", tenant, "policy-events"), nil, 0)
}

// Environments lists a tenant's environments.
func (c *Client) Environments(ctx context.Context, tenant string) ([]httpapi.Environment, error) {
	return list[httpapi.Environment](ctx, c, at("tenants", tenant, "environments"), nil, 0)
}

// Environment shows an environment.
func (c *Client) Environment(ctx context.Context, tenant, name string) (httpapi.Environment, error) {
	return call[httpapi.Environment](ctx, c, http.MethodGet, at("tenants", tenant, "environments", name), nil, nil)
}

// CreateEnvironment makes an environment.
func (c *Client) CreateEnvironment(ctx context.Context, tenant string, in httpapi.EnvironmentChange) (httpapi.Environment, error) {
	return call[httpapi.Environment](ctx, c, http.MethodPost, at("tenants", tenant, "environments"), nil, in)
}

// ChangeEnvironment changes an environment.
func (c *Client) ChangeEnvironment(ctx context.Context, tenant, name string, in httpapi.EnvironmentChange) (httpapi.Environment, error) {
	return call[httpapi.Environment](ctx, c, http.MethodPatch, at("tenants", tenant, "environments", name), nil, in)
}

// DeleteEnvironment removes an environment.
func (c *Client) DeleteEnvironment(ctx context.Context, tenant, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at("tenants", tenant, "environments", name), nil, nil)
	return err
}

// Keys lists a tenant's keys.
func (c *Client) Keys(ctx context.Context, tenant string) ([]httpapi.Key, error) {
	return list[httpapi.Key](ctx, c, at("tenants", tenant, "keys"), nil, 0)
}

// Key shows a key's record.
func (c *Client) Key(ctx context.Context, tenant, name string) (httpapi.Key, error) {
	return call[httpapi.Key](ctx, c, http.MethodGet, at("tenants", tenant, "keys", name), nil, nil)
}

// CreateKey makes a key; the answer has the key itself.
func (c *Client) CreateKey(ctx context.Context, tenant string, in httpapi.NewKey) (httpapi.Key, error) {
	return call[httpapi.Key](ctx, c, http.MethodPost, at("tenants", tenant, "keys"), nil, in)
}

// ChangeKey changes a key.
func (c *Client) ChangeKey(ctx context.Context, tenant, name string, in httpapi.KeyChange) (httpapi.Key, error) {
	return call[httpapi.Key](ctx, c, http.MethodPatch, at("tenants", tenant, "keys", name), nil, in)
}

// RevokeKey ends a key.
func (c *Client) RevokeKey(ctx context.Context, tenant, name string) (httpapi.Key, error) {
	return call[httpapi.Key](ctx, c, http.MethodDelete, at("tenants", tenant, "keys", name), nil, nil)
}

// Connections lists a tenant's connections.
func (c *Client) Connections(ctx context.Context, tenant string) ([]httpapi.Connection, error) {
	return list[httpapi.Connection](ctx, c, at("tenants", tenant, "connections"), nil, 0)
}

// Connection shows a connection.
func (c *Client) Connection(ctx context.Context, tenant, slug string) (httpapi.Connection, error) {
	return call[httpapi.Connection](ctx, c, http.MethodGet, at("tenants", tenant, "connections", slug), nil, nil)
}

// CreateConnection makes a connection.
func (c *Client) CreateConnection(ctx context.Context, tenant string, in httpapi.NewConnection) (httpapi.Connection, error) {
	return call[httpapi.Connection](ctx, c, http.MethodPost, at("tenants", tenant, "connections"), nil, in)
}

// ChangeConnection changes a connection.
func (c *Client) ChangeConnection(ctx context.Context, tenant, slug string, in httpapi.ConnectionChange) (httpapi.Connection, error) {
	return call[httpapi.Connection](ctx, c, http.MethodPatch, at("tenants", tenant, "connections", slug), nil, in)
}

// DeleteConnection removes a connection.
func (c *Client) DeleteConnection(ctx context.Context, tenant, slug string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at("tenants", tenant, "connections", slug), nil, nil)
	return err
}

// Grants lists what mounts a connection.
func (c *Client) Grants(ctx context.Context, tenant, slug string) ([]httpapi.Grant, error) {
	return list[httpapi.Grant](ctx, c, at("tenants", tenant, "connections", slug, "grants"), nil, 0)
}

// CreateGrant has an environment or a key mount a connection.
func (c *Client) CreateGrant(ctx context.Context, tenant, slug string, in httpapi.NewGrant) (httpapi.Grant, error) {
	return call[httpapi.Grant](ctx, c, http.MethodPost, at("tenants", tenant, "connections", slug, "grants"), nil, in)
}

// DeleteGrant takes a grant back.
func (c *Client) DeleteGrant(ctx context.Context, tenant, slug, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at("tenants", tenant, "connections", slug, "grants", id), nil, nil)
	return err
}

// Plans lists plans.
func (c *Client) Plans(ctx context.Context) ([]httpapi.Plan, error) {
	return list[httpapi.Plan](ctx, c, at("plans"), nil, 0)
}

// Plan shows a plan.
func (c *Client) Plan(ctx context.Context, name string) (httpapi.Plan, error) {
	return call[httpapi.Plan](ctx, c, http.MethodGet, at("plans", name), nil, nil)
}

// PutPlan makes or replaces a plan.
func (c *Client) PutPlan(ctx context.Context, name string, in httpapi.PlanBounds) (httpapi.Plan, error) {
	return call[httpapi.Plan](ctx, c, http.MethodPut, at("plans", name), nil, in)
}

// DeletePlan removes a plan.
func (c *Client) DeletePlan(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at("plans", name), nil, nil)
	return err
}

// Templates lists a tenant's templates.
func (c *Client) Templates(ctx context.Context, tenant string) ([]httpapi.Template, error) {
	return list[httpapi.Template](ctx, c, at("tenants", tenant, "templates"), nil, 0)
}

// Template shows a template.
func (c *Client) Template(ctx context.Context, tenant, name string) (httpapi.Template, error) {
	return call[httpapi.Template](ctx, c, http.MethodGet, at("tenants", tenant, "templates", name), nil, nil)
}

// PutTemplate makes or replaces a template.
func (c *Client) PutTemplate(ctx context.Context, tenant, name string, in httpapi.TemplateChange) (httpapi.Template, error) {
	return call[httpapi.Template](ctx, c, http.MethodPut, at("tenants", tenant, "templates", name), nil, in)
}

// DeleteTemplate removes a template.
func (c *Client) DeleteTemplate(ctx context.Context, tenant, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at("tenants", tenant, "templates", name), nil, nil)
	return err
}

// Caps shows the installation's caps of execute_code.
func (c *Client) Caps(ctx context.Context) (httpapi.Caps, error) {
	return call[httpapi.Caps](ctx, c, http.MethodGet, at("caps"), nil, nil)
}

// ChangeCaps changes them.
func (c *Client) ChangeCaps(ctx context.Context, in httpapi.CapsChange) (httpapi.Caps, error) {
	return call[httpapi.Caps](ctx, c, http.MethodPatch, at("caps"), nil, in)
}

// Audit lists the newest audit rows that query selects, at most most.
func (c *Client) Audit(ctx context.Context, tenant string, query url.Values, most int) ([]httpapi.AuditRow, error) {
	return list[httpapi.AuditRow](ctx, c, at("tenants", tenant, "audit"), query, most)
}

// ExportAudit writes audit rows to w as NDJSON.
func (c *Client) ExportAudit(ctx context.Context, tenant string, query url.Values, w io.Writer) error {
	return c.copyTo(ctx, w, at("tenants", tenant, "audit", "export"), query, "application/x-ndjson")
}

// VerifyAudit checks a tenant's audit trail.
func (c *Client) VerifyAudit(ctx context.Context, tenant string, in httpapi.AuditCheck) (httpapi.AuditReport, error) {
	return call[httpapi.AuditReport](ctx, c, http.MethodPost, at("tenants", tenant, "audit", "verify"), nil, in)
}

// Usage shows what a tenant has used.
func (c *Client) Usage(ctx context.Context, tenant string, query url.Values) (httpapi.Usage, error) {
	return call[httpapi.Usage](ctx, c, http.MethodGet, at("tenants", tenant, "usage"), query, nil)
}

// Redeliver has an execution's webhook delivered again.
func (c *Client) Redeliver(ctx context.Context, tenant, traceID string) (httpapi.Redelivery, error) {
	return call[httpapi.Redelivery](ctx, c, http.MethodPost, at("tenants", tenant, "executions", traceID, "webhook"), nil, nil)
}

// Executions lists the newest executions of the key's tenant that query
// selects, at most most.
func (c *Client) Executions(ctx context.Context, query url.Values, most int) ([]httpapi.ExecutionSummary, error) {
	return list[httpapi.ExecutionSummary](ctx, c, "/v1/executions", query, most)
}

// Execution shows an execution with its output.
func (c *Client) Execution(ctx context.Context, traceID string) (httpapi.Execution, error) {
	return call[httpapi.Execution](ctx, c, http.MethodGet, "/v1/executions/"+url.PathEscape(traceID), nil, nil)
}

// CancelExecution ends a running execution.
func (c *Client) CancelExecution(ctx context.Context, traceID string) (httpapi.Execution, error) {
	return call[httpapi.Execution](ctx, c, http.MethodPost, "/v1/executions/"+url.PathEscape(traceID)+"/cancel", nil, nil)
}

// Output writes one of an execution's whole streams to w.
func (c *Client) Output(ctx context.Context, traceID, stream string, w io.Writer) error {
	return c.copyTo(ctx, w, "/v1/executions/"+url.PathEscape(traceID)+"/output", url.Values{"stream": {stream}}, "*/*")
}

// Follow writes an execution's output to w as NDJSON, from its start until it
// has ended.
func (c *Client) Follow(ctx context.Context, traceID string, w io.Writer) error {
	return c.copyTo(ctx, w, "/v1/executions/"+url.PathEscape(traceID)+"/output", nil, "application/x-ndjson")
}

// Threads returns threads of the key's tenant by id, at most most; 0 is for all.
func (c *Client) Threads(ctx context.Context, query url.Values, most int) ([]httpapi.Thread, error) {
	return list[httpapi.Thread](ctx, c, "/v1/threads", query, most)
}

// Thread returns a thread's record.
func (c *Client) Thread(ctx context.Context, id string) (httpapi.Thread, error) {
	return call[httpapi.Thread](ctx, c, http.MethodGet, threadPath(id), nil, nil)
}

// ChangeThread says when a thread is deleted.
func (c *Client) ChangeThread(ctx context.Context, id string, in httpapi.ThreadChange) (httpapi.Thread, error) {
	return call[httpapi.Thread](ctx, c, http.MethodPatch, threadPath(id), nil, in)
}

// DeleteThread deletes a thread.
func (c *Client) DeleteThread(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, threadPath(id), nil, nil)
	return err
}

// ThreadFiles lists a folder of a thread.
func (c *Client) ThreadFiles(ctx context.Context, id, folder string) ([]httpapi.File, error) {
	all, err := call[httpapi.FilesListResponse](ctx, c, http.MethodGet, threadPath(id)+"/files", url.Values{"path": {folder}}, nil)
	return all.Files, err
}

// ReadThreadFile writes a file of a thread to w, ExportThread all of it as a tar
// archive.
func (c *Client) ReadThreadFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.copyTo(ctx, w, threadFile(id, file), nil, "*/*")
}

// ExportThread: see ReadThreadFile.
func (c *Client) ExportThread(ctx context.Context, id string, w io.Writer) error {
	return c.copyTo(ctx, w, threadPath(id)+"/archive", nil, "*/*")
}

// WriteThreadFile stores what r has as a file of a thread.
func (c *Client) WriteThreadFile(ctx context.Context, id, file string, r io.Reader) error {
	return c.upload(ctx, threadFile(id, file), r)
}

// ImportThread makes a thread what the tar archive r has.
func (c *Client) ImportThread(ctx context.Context, id string, r io.Reader) error {
	return c.upload(ctx, threadPath(id)+"/archive", r)
}

// DeleteThreadFile deletes a file or folder of a thread.
func (c *Client) DeleteThreadFile(ctx context.Context, id, file string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, threadFile(id, file), nil, nil)
	return err
}

// upload sends as long as it takes.
func (c *Client) upload(ctx context.Context, path string, r io.Reader) error {
	res, err := c.send(ctx, http.MethodPut, path, nil, r, "application/json")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func threadPath(id string) string { return "/v1/threads/" + url.PathEscape(id) }

func threadFile(id, file string) string {
	parts := strings.Split(strings.Trim(file, "/"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return threadPath(id) + "/files/" + strings.Join(parts, "/")
}
