// Package admin serves the administration of an installation: tenants, environments, keys,
// plans, templates, connections, models, caps and the audit trail.
package admin

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/control/trail"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Handlers serve what is under /v1/admin. All of it is required.
type Handlers struct {
	Tenants      *tenant.Admin
	Environments *environments.Service
	Trail        AuditReader
	Verifier     trail.Verifier
	Caps         CapKeeper
	Models       *model.Catalog
}

// AuditReader reads the audit trail.
type AuditReader interface {
	List(ctx context.Context, f audit.Filter) (page []audit.Row, next string, err error)
	Export(ctx context.Context, tenant tenant.ID, since, before time.Time) iter.Seq2[audit.Row, error]
}

// CapKeeper keeps the installation's caps of execute_code.
type CapKeeper interface {
	Caps(ctx context.Context) (breaker.Caps, error)
	Change(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (breaker.Caps, error)
}

// operation is a row of the table: what operations under /v1/admin differ in.
type operation struct {
	method, path string
	id, summary  string
	description  string
	params       []httpapi.Param // of the query
	body         any             // an example; nil for none
	answer       httpapi.Answer
	serve        httpapi.Endpoint
}

// Operations returns the operations on the installation and its tenants under /v1/admin. The packages
// of other resources return their own.
func (h *Handlers) Operations() []httpapi.Operation {
	var out []httpapi.Operation
	for _, row := range h.table() {
		op := httpapi.Operation{
			Method: row.method, Path: row.path, ID: row.id, Summary: row.summary, Description: row.description,
			Params: row.params, Answers: []httpapi.Answer{row.answer}, Serve: row.serve,
		}
		if row.body != nil {
			op.Body = httpapi.JSON(row.body)
		}
		out = append(out, op)
	}
	return httpapi.ForOperators(out...)
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
		{get, tenants, "listTenants", "List tenants", "All tenants of the installation, `operator` and `dev` among them.", list, nil, ok(httpapi.Page[Tenant]{}), httpapi.Returns(h.listTenants)},
		{post, tenants, "createTenant", "Create a tenant", "The tenant starts without keys. `environment` names an environment to create with it; without it, the tenant starts without environments. Next, create a key, which belongs to one environment. A name that is in use returns 409.", nil, NewTenant{Name: new("acme"), Environment: new("default"), TenantChange: TenantChange{Plan: new("pro")}}, created(Tenant{}), httpapi.Takes(h.createTenant)},
		{get, tenant1, "getTenant", "Show a tenant", "By id or name.", nil, nil, ok(Tenant{}), httpapi.Returns(h.getTenant)},
		{patch, tenant1, "changeTenant", "Change a tenant", "Omitted fields keep their values. A plan whose limits are below one of the tenant's environments returns 429. Atoll records each change as a policy event. With `disabled`, servers reject the tenant's keys within 10 seconds; running programs continue.", nil, TenantChange{Plan: new("enterprise"), NetworkEnabled: new(true)}, ok(Tenant{}), httpapi.Takes(h.changeTenant)},
		{del, tenant1, "deleteTenant", "Delete a tenant with everything that belongs to it", "Atoll rejects the tenant's keys at once, stops its programs and deletes its sandboxes, snapshots, threads, files, executions, responses, sessions, agents, skills, vaults, environments, keys, volumes and usage. The deletion continues after the answer, and after a restart of the server. Until it is complete, `GET` shows the tenant with `deleted_at`; then it returns 404. Atoll keeps the audit trail and the policy events under the tenant's id; they name the key that deleted it. Repeating the request changes nothing. Deleting the tenant `operator` returns 409.", nil, nil, httpapi.Answer{Status: http.StatusAccepted, Doc: "Accepted", Body: Tenant{}}, httpapi.Returns(h.deleteTenant)},
		{get, tenant1 + "/policy-events", "listPolicyEvents", "List the changes to a tenant's policy, oldest first", "Each event records a created, changed or deleted tenant, environment, key, template or grant, with the values before and after. Atoll never changes or deletes events. Events for plans and for the server's caps belong to the tenant `operator`.", list, nil, ok(httpapi.Page[PolicyEvent]{}), lists(t.PolicyEvents, func(e tenant.PolicyEvent) string { return strconv.FormatInt(e.ID, 10) }, eventOf)},
		{get, tenant1 + "/audit", "listAudit", "List audit rows, newest first", "One row for each execution and each call of a named sandbox, refused ones too. All filters that are given must fit. Rows are kept for the tenant's `audit_days`.", auditParams(span), nil, ok(httpapi.Page[AuditRow]{}), httpapi.Returns(h.listAudit)},
		{get, tenant1 + "/audit/export", "exportAudit", "Export audit rows as NDJSON, oldest first", "One JSON object per line, in the order of their ids. If an export fails, the server cuts the connection, so that a partial export does not look complete.", span, nil, httpapi.Answer{Status: http.StatusOK, Doc: "OK", Media: []httpapi.Media{{Type: httpapi.NDJSON, Body: AuditRow{}}}}, httpapi.Writes(h.exportAudit)},
		{get, trails, "listTrails", "List tenants that have an audit trail, including deleted ones", "Atoll keeps audit rows after it deletes their tenant, so the list includes deleted tenants. Use the id with `/v1/admin/tenants/{tenant}/audit`.", list, nil, ok(httpapi.Page[AuditTrail]{}), httpapi.Returns(h.listTrails)},
		{post, tenant1 + "/audit/verify", "verifyAudit", "Seal the rows that are not sealed yet, and check the whole trail", "It recomputes the hash of every row and seal. The answer is 200 also when something was changed: `ok` is false then, and `problems` lists where. Give the `head` of an earlier report as `known` to find rows that were cut off at the end.", nil, AuditCheck{Known: &AuditMark{Number: 12, Hash: exampleHash}}, ok(AuditReport{}), httpapi.Takes(h.verifyAudit)},

		{get, environments, "listEnvironments", "List a tenant's environments", "The environments of one tenant, with variables and without the values of secrets.", list, nil, ok(httpapi.Page[Environment]{}), lists(t.Environments, func(e tenant.Environment) string { return e.ID }, environmentOf)},
		{post, environments, "createEnvironment", "Create an environment", "Omitted fields get the values of the server's configuration. Above the tenant's plan the answer is 429 and names the bound. Packages are installed in the background: `packages` says how far that is.", nil, EnvironmentChange{
			Name: new("reports"), Limits: &environmentwire.LimitsChange{CPU: new(1.0), Memory: new(int64(512 << 20))},
		}, created(Environment{}), httpapi.Takes(h.createEnvironment)},
		{get, environment1, "getEnvironment", "Show an environment", "By id or name, with what its packages have come to.", nil, nil, ok(Environment{}), gets("environment", h.Environments.GetIn, builtOf)},
		{patch, environment1, "changeEnvironment", "Change an environment", "Omitted fields keep their values. Executions that run continue with what they were started with; the next ones have the change. Above the tenant's plan the answer is 429.", nil, EnvironmentChange{Permissions: &environmentwire.PermissionsChange{
			Network: &environmentwire.NetworkChange{Enabled: new(true), AllowedHosts: &[]string{"api.example.com", "*.data.example.com"}},
		}}, ok(Environment{}), httpapi.Takes(h.changeEnvironment)},
		{del, environment1, "deleteEnvironment", "Delete an environment without valid keys", "Atoll also deletes the environment's named sandboxes and snapshots. An environment that a valid key uses returns 409: revoke the key first.", nil, nil, done, httpapi.Does(h.deleteEnvironment)},

		{get, keys, "listKeys", "List a tenant's keys", "The tenant's keys, revoked and expired ones too, with the last four characters and without the key itself.", list, nil, ok(httpapi.Page[Key]{}), lists(t.Keys, func(k tenant.Key) string { return k.ID }, keyOf)},
		{post, keys, "createKey", "Create a key; only this answer shows it", "The key, `sk-atoll-…`, is in this answer alone: the server keeps its SHA-256. It is bound to one environment for good. A key that names no scope gets `execute`, `read`, `tools` and `sandboxes`.", nil, NewKey{Name: new("ci"), Environment: new("reports"), Scopes: &[]string{"execute", "read"}}, created(Key{}), httpapi.Takes(h.createKey)},
		{get, key1, "getKey", "Show a key", "By id or name, without the key itself.", nil, nil, ok(Key{}), gets("key", t.Key, keyOf)},
		{patch, key1, "changeKey", "Change a key", "Omitted fields keep their values. You cannot change the environment of a key: create another key. A change applies from the next request.", nil, KeyChange{ExpiresAt: new("2030-01-31T12:00:00Z")}, ok(Key{}), httpapi.Takes(h.changeKey)},
		{del, key1, "revokeKey", "Revoke a key", "This server rejects the key and its tokens at once, other servers within 10 seconds. Their streams and terminals end. Revoking a key again changes nothing.", nil, nil, ok(Key{}), httpapi.Returns(h.revokeKey)},

		{get, connections, "listConnections", "List a tenant's connections", "Buckets and volumes that the tenant's sandboxes can mount, without their credentials.", list, nil, ok(httpapi.Page[Connection]{}), lists(t.Connections, func(v storage.Connection) string { return v.ID }, connectionOf)},
		{post, connections, "createConnection", "Create a connection, after the storage was reached", "Atoll first lists the storage with these credentials. If that fails, the answer is 400 with the reason. Credentials are stored encrypted and never shown. Nothing sees it until a grant is made.", nil, NewConnection{
			Slug: new("datasets"), Kind: new("s3"), Target: Target{Bucket: "my-datasets", Region: "eu-central-1"},
			ConnectionChange: ConnectionChange{ReadOnly: new(true), Credentials: &Credentials{AccessKeyID: "AKIA…", SecretAccessKey: "…"}},
		}, created(Connection{}), httpapi.Takes(h.createConnection)},
		{get, connection1, "getConnection", "Show a connection", "By id or slug, without its credentials.", nil, nil, ok(Connection{}), gets("connection", t.Connection, connectionOf)},
		{patch, connection1, "changeConnection", "Change a connection's prefix, mode or credentials", "Omitted fields keep their values. Atoll first lists the storage, as on creation. Sandboxes that mount the connection lose access to the excluded parts within 10 seconds.", nil, ConnectionChange{Prefix: new("2030")}, ok(Connection{}), httpapi.Takes(h.changeConnection)},
		{del, connection1, "deleteConnection", "Delete a connection that has no grants; the stored files stay", "The files in the bucket or folder are left as they are. A connection that has grants returns 409.", nil, nil, done, deletes("connection", t.DeleteConnection)},
		{get, grants, "listGrants", "List the grants of a connection", "Environments and keys that mount the connection, with the part of it that they see.", list, nil, ok(httpapi.Page[Grant]{}), httpapi.Returns(h.listGrants)},
		{post, grants, "createGrant", "Let an environment or a key mount a connection", "Executions and sandboxes that start from then on have it at `/data/{slug}`. Give an environment or a key, not both.", nil, NewGrant{Environment: new("reports"), ReadOnly: new(true)}, created(Grant{}), httpapi.Takes(h.createGrant)},
		{del, grants + "/{grant}", "deleteGrant", "Remove a grant", "Within 10 seconds named sandboxes that have it mounted start anew without it. Executions that run keep what they have.", nil, nil, done, httpapi.Does(h.deleteGrant)},

		{get, templates, "listTemplates", "List a tenant's agent templates", "Each template holds the permissions of the tenant's agents for `execute_code`.", list, nil, ok(httpapi.Page[Template]{}), lists(t.Templates, func(v tenant.Template) string { return v.Name }, templateOf)},
		{get, template1, "getTemplate", "Show a template", "By its name.", nil, nil, ok(Template{}), gets("template", t.Template, templateOf)},
		{put, template1, "putTemplate", "Create or replace a template", "It replaces all of it. It holds from the next call of `execute_code` on, and is a policy event.", nil, TemplateChange{Sandbox: &TemplateSandbox{Environment: "internal-only"}}, ok(Template{}), httpapi.Takes(h.putTemplate)},
		{del, template1, "deleteTemplate", "Delete a template", "Calls of `execute_code` that name it return 403 from then on.", nil, nil, done, httpapi.Does(h.deleteTemplate)},

		{get, plans, "listPlans", "List plans", "The built-in plans `free`, `pro` and `enterprise`, and those that the operator has made.", list, nil, ok(httpapi.Page[Plan]{}), httpapi.Returns(h.listPlans)},
		{get, plan1, "getPlan", "Show a plan", "A bound of 0 is none of the plan's; the server's own still holds.", nil, nil, ok(Plan{}), httpapi.Returns(h.getPlan)},
		{put, plan1, "putPlan", "Create a plan, or replace one that is not built in", "It replaces all bounds. An omitted field means no bound, and an omitted `max_output` means 100 MiB. It is in force at once: environments above it are refused at their next execution with 429. Built-in plans return 409.", nil, PlanBounds{MaxCPU: new(2.0), MaxMemory: new(int64(2 << 30)), Concurrency: new(20), Streaming: new(true)}, ok(Plan{}), httpapi.Takes(h.putPlan)},
		{del, plan1, "deletePlan", "Delete a plan that no tenant has", "A built-in plan, or one that a tenant has, returns 409: give the tenants another plan first.", nil, nil, done, httpapi.Does(h.deletePlan)},

		{get, models, "listAllModels", "List models of providers", "All models of the installation, those of the models' file too, without their keys. `GET /v1/models` lists those that one tenant may name.", list, nil, ok(httpapi.Page[Model]{}), httpapi.Returns(h.listModels)},
		{post, models, "createModel", "Create a model", "The key is stored encrypted and never shown again. Atoll does not call the provider: `POST /v1/admin/models/{model}/test` does that. A name that is taken returns 409.", nil, NewModel{
			Name: new("acme/large"), Provider: new(model.Provider("openai")),
			ModelChange: ModelChange{Upstream: new("large-2026"), Key: new("sk-…"), Prices: &ModelPrices{Input: "2.50", Output: "10", CacheRead: "0.25"}, Tenants: &[]string{"acme"}},
		}, created(Model{}), httpapi.Takes(h.createModel)},
		{get, model1, "getModel", "Show a model", "By name or id, without its key. `source` says whether the API or the models' file has made it.", nil, nil, ok(Model{}), httpapi.Returns(h.getModel)},
		{patch, model1, "changeModel", "Change a model, from its next request on", "Omitted fields keep their values. A model whose `base_url` changes needs its key in the same request, since a key is sent to no other server than the one it was given for. A model of the models' file returns 409.", nil, ModelChange{Upstream: new("large-2027"), Prices: &ModelPrices{Input: "2", Output: "8"}}, ok(Model{}), httpapi.Takes(h.changeModel)},
		{del, model1, "deleteModel", "Delete a model", "Requests that name it are refused as unknown from then on; runs that are in progress fail at their next request. A model that the models' file declares returns 409.", nil, nil, done, httpapi.Does(h.deleteModel)},
		{post, model1 + "/test", "testModel", "Ask a model something, and show its answer, tokens and price", "It sends one request to the provider with the operator's key, which the provider bills and no tenant pays. A provider that refuses or does not answer is no error of this call: `error` says why, and the status is 200.", nil, ModelTest{Prompt: new("Answer with one word.")}, ok(ModelTrial{}), httpapi.Takes(h.testModel)},

		{get, caps, "getCaps", "Show the installation's caps of execute_code", "The caps that the configuration sets, and those that replace them at run time. They bound how many calls of `execute_code` an agent has in an hour and a tenant in a day; a tenant's own `caps` come first.", nil, nil, ok(Caps{}), httpapi.Returns(h.getCaps)},
		{patch, caps, "changeCaps", "Change the installation's caps of execute_code, from the next call on", "Omitted fields stay unchanged; 0 stops every call. It is recorded as a policy event of the tenant `operator`.", nil, CapsChange{TenantDaily: new(int64(10_000))}, ok(Caps{}), httpapi.Takes(h.changeCaps)},
	}
}
