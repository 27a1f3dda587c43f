// Package admin serves the administration of an installation: tenants, environments, keys,
// plans, templates, connections, models, caps and the audit trail.
package admin

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
	modelapi "github.com/atoll-run/atoll/internal/edge/httpapi/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
)

// Handlers serve what is under /v1/admin. All of it is required.
type Handlers struct {
	Tenants    *tenant.Admin
	Trail      AuditReader
	Verifier   AuditVerifier
	Usage      *usage.Handlers
	Caps       CapKeeper
	Executions ExecutionGetter
	Webhooks   Redeliverer
	Models     *model.Catalog
}

// AuditReader reads the audit trail.
type AuditReader interface {
	List(ctx context.Context, f audit.Filter) (page []audit.Row, next string, err error)
	Export(ctx context.Context, tenant tenant.ID, since, before time.Time) iter.Seq2[audit.Row, error]
}

// AuditVerifier checks the audit trail.
type AuditVerifier interface {
	Verify(ctx context.Context, tenant tenant.ID, known audit.Mark) (audit.Report, error)
	Trails(ctx context.Context) ([]tenant.ID, error)
}

// CapKeeper keeps the installation's caps of execute_code.
type CapKeeper interface {
	Caps(ctx context.Context) (breaker.Caps, error)
	Change(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (breaker.Caps, error)
}

// ExecutionGetter finds executions.
type ExecutionGetter interface {
	Get(ctx context.Context, tenantID tenant.ID, traceID string) (*execution.Execution, error)
}

// Redeliverer delivers the webhook of an ended execution again.
type Redeliverer interface {
	Redeliver(ctx context.Context, e *execution.Execution) error
}

// operation is a row of the table: what operations under /v1/admin differ in.
type operation struct {
	method, path string
	id, summary  string
	params       []httpapi.Param // of the query
	body         any             // an example; nil for none
	answer       httpapi.Answer
	serve        httpapi.Endpoint
}

// maxParameter bounds the characters of a text in a query.
const maxParameter = 512

// Operations are those under /v1/admin. Only keys with the scope admin may use them.
func (h *Handlers) Operations() []httpapi.Operation {
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: there is no such thing.")
	var out []httpapi.Operation
	for _, row := range h.table() {
		op := httpapi.Operation{
			Method: row.method, Path: row.path, ID: row.id, Tag: "admin", Summary: row.summary, Scope: tenant.ScopeAdmin,
			Answers: []httpapi.Answer{row.answer, unknown}, Serve: row.serve,
		}
		for _, p := range row.params {
			if p.Type == httpapi.Text && p.Max == 0 {
				p.Max = maxParameter
			}
			op.Params = append(op.Params, p)
		}
		for _, part := range []string{"tenant", "environment", "key", "connection", "grant", "template", "plan", "model"} {
			op.Params = append(op.Params, pathParam(row.path, part, "Id or name.")...)
		}
		op.Params = append(op.Params, pathParam(row.path, "trace_id", "The trace_id of the execution.")...)
		if row.body != nil {
			op.Body = &httpapi.Body{JSON: row.body, Optional: true}
			op.Answers = append(op.Answers,
				httpapi.Refusal(http.StatusConflict, "conflict: the name is taken, or the present state forbids it."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: above the tenant's plan."))
		}
		out = append(out, op)
	}
	return out
}

func (h *Handlers) table() []operation {
	const (
		get, post, patch, put, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete

		tenants      = "/v1/admin/tenants"
		tenant1      = tenants + "/{tenant}"
		environments = tenant1 + "/environments"
		environment1 = environments + "/{environment}"
		keys         = tenant1 + "/keys"
		key1         = keys + "/{key}"
		connections  = tenant1 + "/connections"
		connection1  = connections + "/{connection}"
		grants       = connection1 + "/grants"
		templates    = tenant1 + "/templates"
		template1    = templates + "/{template}"
		plans        = "/v1/admin/plans"
		plan1        = plans + "/{plan}"
		models       = "/v1/admin/models"
		model1       = models + "/{model}"
		modelKeys    = tenant1 + "/model-keys"
		caps         = "/v1/admin/caps"
		trails       = "/v1/admin/audit/trails"
	)
	list := httpapi.PageParams(50, 100)
	span := []httpapi.Param{
		{Name: "since", Type: httpapi.Time, Doc: "From this time on."},
		{Name: "before", Type: httpapi.Time, Doc: "Up to, and without, this time."},
	}
	ok := func(body any) httpapi.Answer { return httpapi.OK(body, "OK") }
	created := func(body any) httpapi.Answer { return httpapi.Created(body, "Created") }
	done := httpapi.NoContent("No Content")
	t := h.Tenants
	return []operation{
		{get, tenants, "listTenants", "List tenants", list, nil, ok(httpapi.Page[Tenant]{}), httpapi.Returns(h.listTenants)},
		{post, tenants, "createTenant", "Create a tenant", nil, NewTenant{Name: new("acme"), TenantChange: TenantChange{Plan: new("pro")}}, created(Tenant{}), httpapi.Takes(h.createTenant)},
		{get, tenant1, "getTenant", "Show a tenant", nil, nil, ok(Tenant{}), httpapi.Returns(h.getTenant)},
		{patch, tenant1, "changeTenant", "Change a tenant", nil, TenantChange{Plan: new("enterprise"), NetworkEnabled: new(true)}, ok(Tenant{}), httpapi.Takes(h.changeTenant)},
		{get, tenant1 + "/policy-events", "listPolicyEvents", "List the changes to what a tenant may do, oldest first", list, nil, ok(httpapi.Page[PolicyEvent]{}), lists(t.PolicyEvents, func(e tenant.PolicyEvent) string { return strconv.FormatInt(e.ID, 10) }, eventOf)},
		{get, tenant1 + "/audit", "listAudit", "List audit rows, newest first", auditParams(span), nil, ok(httpapi.Page[AuditRow]{}), httpapi.Returns(h.listAudit)},
		{get, tenant1 + "/audit/export", "exportAudit", "Export audit rows as NDJSON, oldest first", span, nil, httpapi.Answer{Status: http.StatusOK, Doc: "OK", Media: []httpapi.Media{{Type: httpapi.NDJSON, Body: AuditRow{}}}}, httpapi.Writes(h.exportAudit)},
		{get, trails, "listTrails", "List tenants that have an audit trail, also those that are not on record any more", list, nil, ok(httpapi.Page[AuditTrail]{}), httpapi.Returns(h.listTrails)},
		{post, tenant1 + "/audit/verify", "verifyAudit", "Seal the rows that are not sealed yet, and check the whole trail", nil, AuditCheck{Known: &AuditMark{Number: 12, Hash: exampleHash}}, ok(AuditReport{}), httpapi.Takes(h.verifyAudit)},
		{get, tenant1 + "/usage", "getTenantUsage", "Show what a tenant has used", span, nil, ok(usage.Usage{}), httpapi.Returns(h.tenantUsage)},

		{get, environments, "listEnvironments", "List a tenant's environments", list, nil, ok(httpapi.Page[Environment]{}), lists(t.Environments, func(e tenant.Environment) string { return e.ID }, environmentOf)},
		{post, environments, "createEnvironment", "Create an environment", nil, EnvironmentChange{
			Name: new("reports"), Limits: &environment.LimitsChange{CPU: new(1.0), Memory: new(int64(512 << 20))},
		}, created(Environment{}), httpapi.Takes(h.createEnvironment)},
		{get, environment1, "getEnvironment", "Show an environment", nil, nil, ok(Environment{}), httpapi.Returns(h.getEnvironment)},
		{patch, environment1, "changeEnvironment", "Change an environment", nil, EnvironmentChange{Permissions: &environment.PermissionsChange{
			Network: &environment.NetworkChange{Enabled: new(true), AllowedHosts: &[]string{"api.example.com", "*.data.example.com"}},
		}}, ok(Environment{}), httpapi.Takes(h.changeEnvironment)},
		{del, environment1, "deleteEnvironment", "Delete an environment that no valid key is bound to", nil, nil, done, deletes("environment", t.DeleteEnvironment)},

		{get, keys, "listKeys", "List a tenant's keys", list, nil, ok(httpapi.Page[Key]{}), lists(t.Keys, func(k tenant.Key) string { return k.ID }, keyOf)},
		{post, keys, "createKey", "Create a key; only this answer shows it", nil, NewKey{Name: new("ci"), Environment: new("reports"), Scopes: &[]string{"execute", "read"}}, created(Key{}), httpapi.Takes(h.createKey)},
		{get, key1, "getKey", "Show a key", nil, nil, ok(Key{}), gets("key", t.Key, keyOf)},
		{patch, key1, "changeKey", "Change a key", nil, KeyChange{ExpiresAt: new("2030-01-31T12:00:00Z")}, ok(Key{}), httpapi.Takes(h.changeKey)},
		{del, key1, "revokeKey", "Revoke a key", nil, nil, ok(Key{}), gets("key", t.RevokeKey, keyOf)},

		{get, connections, "listConnections", "List a tenant's connections", list, nil, ok(httpapi.Page[Connection]{}), lists(t.Connections, func(v storage.Connection) string { return v.ID }, connectionOf)},
		{post, connections, "createConnection", "Create a connection, after the storage was reached", nil, NewConnection{
			Slug: new("datasets"), Kind: new("s3"), Target: Target{Bucket: "my-datasets", Region: "eu-central-1"},
			ConnectionChange: ConnectionChange{ReadOnly: new(true), Credentials: &Credentials{AccessKeyID: "AKIA…", SecretAccessKey: "…"}},
		}, created(Connection{}), httpapi.Takes(h.createConnection)},
		{get, connection1, "getConnection", "Show a connection", nil, nil, ok(Connection{}), gets("connection", t.Connection, connectionOf)},
		{patch, connection1, "changeConnection", "Change a connection's prefix, mode or credentials", nil, ConnectionChange{Prefix: new("2030")}, ok(Connection{}), httpapi.Takes(h.changeConnection)},
		{del, connection1, "deleteConnection", "Delete a connection that has no grants; what is stored stays", nil, nil, done, deletes("connection", t.DeleteConnection)},
		{get, grants, "listGrants", "List the grants of a connection", list, nil, ok(httpapi.Page[Grant]{}), httpapi.Returns(h.listGrants)},
		{post, grants, "createGrant", "Let an environment or a key mount a connection", nil, NewGrant{Environment: new("reports"), ReadOnly: new(true)}, created(Grant{}), httpapi.Takes(h.createGrant)},
		{del, grants + "/{grant}", "deleteGrant", "Remove a grant", nil, nil, done, httpapi.Does(h.deleteGrant)},

		{get, templates, "listTemplates", "List a tenant's agent templates", list, nil, ok(httpapi.Page[Template]{}), lists(t.Templates, func(v tenant.Template) string { return v.Name }, templateOf)},
		{get, template1, "getTemplate", "Show a template", nil, nil, ok(Template{}), gets("template", t.Template, templateOf)},
		{put, template1, "putTemplate", "Create or replace a template", nil, TemplateChange{Sandbox: &TemplateSandbox{Environment: "internal-only"}}, ok(Template{}), httpapi.Takes(h.putTemplate)},
		{del, template1, "deleteTemplate", "Delete a template", nil, nil, done, httpapi.Does(h.deleteTemplate)},

		{get, plans, "listPlans", "List plans", list, nil, ok(httpapi.Page[Plan]{}), httpapi.Returns(h.listPlans)},
		{get, plan1, "getPlan", "Show a plan", nil, nil, ok(Plan{}), httpapi.Returns(h.getPlan)},
		{put, plan1, "putPlan", "Create a plan, or replace one that is not built in", nil, PlanBounds{MaxCPU: new(2.0), MaxMemory: new(int64(2 << 30)), Concurrency: new(20), Streaming: new(true)}, ok(Plan{}), httpapi.Takes(h.putPlan)},
		{del, plan1, "deletePlan", "Delete a plan that no tenant has", nil, nil, done, httpapi.Does(h.deletePlan)},

		{get, models, "listAllModels", "List models of providers", list, nil, ok(httpapi.Page[Model]{}), httpapi.Returns(h.listModels)},
		{post, models, "createModel", "Create a model", nil, NewModel{
			Name: new("acme/large"), Provider: new("openai"),
			ModelChange: ModelChange{Upstream: new("large-2026"), Key: new("sk-…"), Prices: &ModelPrices{Input: "2.50", Output: "10", CacheRead: "0.25"}, Tenants: &[]string{"acme"}},
		}, created(Model{}), httpapi.Takes(h.createModel)},
		{get, model1, "getModel", "Show a model", nil, nil, ok(Model{}), httpapi.Returns(h.getModel)},
		{patch, model1, "changeModel", "Change a model, from its next request on", nil, ModelChange{Upstream: new("large-2027"), Prices: &ModelPrices{Input: "2", Output: "8"}}, ok(Model{}), httpapi.Takes(h.changeModel)},
		{del, model1, "deleteModel", "Delete a model", nil, nil, done, httpapi.Does(h.deleteModel)},
		{get, modelKeys, "listTenantModelKeys", "List a tenant's own keys for models, without the keys", list, nil, ok(httpapi.Page[modelapi.ModelKey]{}), httpapi.Returns(h.listModelKeys)},
		{put, modelKeys + "/{model}", "putTenantModelKey", "Have a tenant use a model with a key of its own", nil, modelapi.NewModelKey{Key: new("sk-of-acme")}, ok(modelapi.ModelKey{}), httpapi.Takes(h.putModelKey)},
		{del, modelKeys + "/{model}", "deleteTenantModelKey", "Have a tenant use a model with the operator's key again", nil, nil, done, httpapi.Does(h.deleteModelKey)},
		{post, model1 + "/test", "testModel", "Ask a model something, and show its answer, tokens and price", nil, ModelTest{Prompt: new("Answer with one word.")}, ok(ModelTrial{}), httpapi.Takes(h.testModel)},

		{get, caps, "getCaps", "Show the installation's caps of execute_code", nil, nil, ok(Caps{}), httpapi.Returns(h.getCaps)},
		{patch, caps, "changeCaps", "Change the installation's caps of execute_code, from the next call on", nil, CapsChange{TenantDaily: new(int64(10_000))}, ok(Caps{}), httpapi.Takes(h.changeCaps)},
		{post, tenant1 + "/executions/{trace_id}/webhook", "redeliverWebhook", "Deliver an execution's webhook again", nil, nil, httpapi.Answer{Status: http.StatusAccepted, Doc: "Accepted", Body: Redelivery{}}, httpapi.Returns(h.redeliver)},
	}
}
