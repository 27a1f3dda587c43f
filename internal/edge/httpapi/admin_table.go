package httpapi

import "net/http"

// adminTable lists every operation under /v1/admin.
func adminTable() []adminRoute {
	const (
		get, post, patch, put, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete
		ok, made, none             = http.StatusOK, http.StatusCreated, http.StatusNoContent

		tenants      = "/v1/admin/tenants"
		tenant       = tenants + "/{tenant}"
		environments = tenant + "/environments"
		environment  = environments + "/{environment}"
		keys         = tenant + "/keys"
		key          = keys + "/{key}"
		connections  = tenant + "/connections"
		connection   = connections + "/{connection}"
		grants       = connection + "/grants"
		templates    = tenant + "/templates"
		template     = templates + "/{template}"
		plans        = "/v1/admin/plans"
		plan         = plans + "/{plan}"
		caps         = "/v1/admin/caps"
	)
	list, span := []string{"limit", "page"}, []string{"since", "before"}
	return []adminRoute{
		{get, tenants, "listTenants", "List tenants", list, nil, Page[Tenant]{}, ok, (*adminCall).listTenants},
		{post, tenants, "createTenant", "Make a tenant", nil, NewTenant{}, Tenant{}, made, (*adminCall).createTenant},
		{get, tenant, "getTenant", "Show a tenant", nil, nil, Tenant{}, ok, (*adminCall).getTenant},
		{patch, tenant, "changeTenant", "Change a tenant", nil, TenantChange{}, Tenant{}, ok, (*adminCall).changeTenant},
		{get, tenant + "/policy-events", "listPolicyEvents", "List the changes to what a tenant may do, oldest first", list, nil, Page[PolicyEvent]{}, ok, (*adminCall).listPolicyEvents},
		{get, tenant + "/audit", "listAudit", "List audit rows, newest first", auditQuery, nil, Page[AuditRow]{}, ok, (*adminCall).listAudit},
		{get, tenant + "/audit/export", "exportAudit", "Export audit rows as NDJSON, oldest first", span, nil, AuditRow{}, ok, (*adminCall).exportAudit},
		{post, tenant + "/audit/verify", "verifyAudit", "Seal what is not sealed yet, and check the whole trail", nil, AuditCheck{}, AuditReport{}, ok, (*adminCall).verifyAudit},
		{get, tenant + "/usage", "getTenantUsage", "Show what a tenant has used", span, nil, Usage{}, ok, (*adminCall).tenantUsage},

		{get, environments, "listEnvironments", "List a tenant's environments", list, nil, Page[Environment]{}, ok, (*adminCall).listEnvironments},
		{post, environments, "createEnvironment", "Make an environment", nil, EnvironmentChange{}, Environment{}, made, (*adminCall).createEnvironment},
		{get, environment, "getEnvironment", "Show an environment", nil, nil, Environment{}, ok, (*adminCall).getEnvironment},
		{patch, environment, "changeEnvironment", "Change an environment", nil, EnvironmentChange{}, Environment{}, ok, (*adminCall).changeEnvironment},
		{del, environment, "deleteEnvironment", "Remove an environment that no living key is bound to", nil, nil, nil, none, (*adminCall).deleteEnvironment},

		{get, keys, "listKeys", "List a tenant's keys", list, nil, Page[Key]{}, ok, (*adminCall).listKeys},
		{post, keys, "createKey", "Make a key; its answer alone shows it", nil, NewKey{}, Key{}, made, (*adminCall).createKey},
		{get, key, "getKey", "Show a key", nil, nil, Key{}, ok, (*adminCall).getKey},
		{patch, key, "changeKey", "Change a key", nil, KeyChange{}, Key{}, ok, (*adminCall).changeKey},
		{del, key, "revokeKey", "Revoke a key", nil, nil, Key{}, ok, (*adminCall).revokeKey},

		{get, connections, "listConnections", "List a tenant's connections", list, nil, Page[Connection]{}, ok, (*adminCall).listConnections},
		{post, connections, "createConnection", "Make a connection, once it is known to lead somewhere", nil, NewConnection{}, Connection{}, made, (*adminCall).createConnection},
		{get, connection, "getConnection", "Show a connection", nil, nil, Connection{}, ok, (*adminCall).getConnection},
		{patch, connection, "changeConnection", "Change a connection's prefix, mode or credentials", nil, ConnectionChange{}, Connection{}, ok, (*adminCall).changeConnection},
		{del, connection, "deleteConnection", "Remove a connection that nothing mounts; what is stored stays", nil, nil, nil, none, (*adminCall).deleteConnection},
		{get, grants, "listGrants", "List what mounts a connection", list, nil, Page[Grant]{}, ok, (*adminCall).listGrants},
		{post, grants, "createGrant", "Have an environment or a key mount a connection", nil, NewGrant{}, Grant{}, made, (*adminCall).createGrant},
		{del, grants + "/{grant}", "deleteGrant", "Take a grant back", nil, nil, nil, none, (*adminCall).deleteGrant},

		{get, templates, "listTemplates", "List a tenant's agent templates", list, nil, Page[Template]{}, ok, (*adminCall).listTemplates},
		{get, template, "getTemplate", "Show a template", nil, nil, Template{}, ok, (*adminCall).getTemplate},
		{put, template, "putTemplate", "Make or replace a template", nil, TemplateChange{}, Template{}, ok, (*adminCall).putTemplate},
		{del, template, "deleteTemplate", "Remove a template", nil, nil, nil, none, (*adminCall).deleteTemplate},

		{get, plans, "listPlans", "List plans", list, nil, Page[Plan]{}, ok, (*adminCall).listPlans},
		{get, plan, "getPlan", "Show a plan", nil, nil, Plan{}, ok, (*adminCall).getPlan},
		{put, plan, "putPlan", "Make a plan, or replace one that is not built in", nil, PlanBounds{}, Plan{}, ok, (*adminCall).putPlan},
		{del, plan, "deletePlan", "Remove a plan that no tenant has", nil, nil, nil, none, (*adminCall).deletePlan},

		{get, caps, "getCaps", "Show the installation's caps of execute_code", nil, nil, Caps{}, ok, (*adminCall).getCaps},
		{patch, caps, "changeCaps", "Change them, from the next call on", nil, CapsChange{}, Caps{}, ok, (*adminCall).changeCaps},
		{post, tenant + "/executions/{trace_id}/webhook", "redeliverWebhook", "Deliver an execution's webhook again", nil, nil, Redelivery{}, http.StatusAccepted, (*adminCall).redeliver},
	}
}
