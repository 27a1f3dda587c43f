import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type {
  Activity, AuditCheck, AuditReport, AuditRow, AuditTrail, Caps, CapsChange, Model, ModelChange, ModelKey, ModelTest, ModelTrial, NewModel, NewModelKey, NewTenant,
  Orphans, Plan, PlanBounds, PolicyEvent, Redelivery, Template, TemplateChange, Tenant, TenantChange, Usage,
} from "../wire.gen.js";
import { AdminConnections, AdminEnvironments, AdminGrants, AdminKeys } from "./admin_tenant.js";
import { tagged } from "./executions.js";
import type { ActivityQuery, SpanQuery, UsageQuery } from "./own.js";

/** Operations for operators; they need a key with the scope admin. */
export class Admin extends Resource {
  readonly tenants = new AdminTenants(this.t);
  readonly environments = new AdminEnvironments(this.t);
  readonly keys = new AdminKeys(this.t);
  readonly connections = new AdminConnections(this.t);
  readonly grants = new AdminGrants(this.t);
  readonly templates = new AdminTemplates(this.t);
  readonly modelKeys = new AdminModelKeys(this.t);
  readonly policyEvents = new AdminPolicyEvents(this.t);
  readonly usage = new AdminUsage(this.t);
  readonly activity = new AdminActivity(this.t);
  readonly webhooks = new AdminWebhooks(this.t);
  readonly plans = new AdminPlans(this.t);
  readonly caps = new AdminCaps(this.t);
  readonly models = new AdminModels(this.t);
  readonly orphans = new AdminOrphans(this.t);
  readonly audit = new AdminAudit(this.t);
}

/** The tenants of an installation. */
export class AdminTenants extends Resource {
  /** Makes a tenant. */
  create = (request: NewTenant, o?: CallOptions) => this.t.post<Tenant>("/v1/admin/tenants", request, o);
  /** Lists tenants. */
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Tenant>("/v1/admin/tenants", query, o);
  /** Shows a tenant. */
  get = (tenant: string, o?: CallOptions) => this.t.get<Tenant>(p`/v1/admin/tenants/${tenant}`, o);
  /** Changes a tenant; omitted fields stay unchanged. */
  change = (tenant: string, change: TenantChange, o?: CallOptions) => this.t.patch<Tenant>(p`/v1/admin/tenants/${tenant}`, change, o);
  /** Deletes a tenant with all its data; the server completes the deletion after the answer. */
  delete = (tenant: string, o?: CallOptions) => this.t.delete<Tenant>(p`/v1/admin/tenants/${tenant}`, o);
}

/** Templates: the permissions of a tenant's agents for execute_code. */
export class AdminTemplates extends Resource {
  /** Lists templates. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Template>(p`/v1/admin/tenants/${tenant}/templates`, query, o);
  /** Shows a template. */
  get = (tenant: string, template: string, o?: CallOptions) => this.t.get<Template>(p`/v1/admin/tenants/${tenant}/templates/${template}`, o);
  /** Makes or replaces a template. */
  put = (tenant: string, template: string, change: TemplateChange, o?: CallOptions) =>
    this.t.put<Template>(p`/v1/admin/tenants/${tenant}/templates/${template}`, change, o);
  /** Deletes a template. */
  delete = (tenant: string, template: string, o?: CallOptions) => this.t.delete(p`/v1/admin/tenants/${tenant}/templates/${template}`, o);
}

/** A tenant's own keys for models. */
export class AdminModelKeys extends Resource {
  /** Lists models that the tenant has a key of its own for. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<ModelKey>(p`/v1/admin/tenants/${tenant}/model-keys`, query, o);
  /** Gives the tenant a key of its own for a model. */
  put = (tenant: string, model: string, request: NewModelKey, o?: CallOptions) =>
    this.t.put<ModelKey>(p`/v1/admin/tenants/${tenant}/model-keys/${model}`, request, o);
  /** Has the tenant use the operator's key again. */
  delete = (tenant: string, model: string, o?: CallOptions) => this.t.delete(p`/v1/admin/tenants/${tenant}/model-keys/${model}`, o);
}

/** The changes to what a tenant may do. */
export class AdminPolicyEvents extends Resource {
  /** Lists the changes, oldest first. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<PolicyEvent>(p`/v1/admin/tenants/${tenant}/policy-events`, query, o);
}

/** Usage of a tenant. */
export class AdminUsage extends Resource {
  /** Shows what the tenant has used, by day. */
  get = (tenant: string, query?: UsageQuery, o?: CallOptions) => this.t.get<Usage>(p`/v1/admin/tenants/${tenant}/usage`, o, query);
}

/** The webhooks of ended executions. */
export class AdminWebhooks extends Resource {
  /** Sends an execution's message once more. */
  redeliver = (tenant: string, traceId: string, o?: CallOptions) =>
    this.t.post<Redelivery>(p`/v1/admin/tenants/${tenant}/executions/${traceId}/webhook`, undefined, o);
}

/** Plans, which bound what tenants may use. */
export class AdminPlans extends Resource {
  /** Lists plans. */
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Plan>("/v1/admin/plans", query, o);
  /** Shows a plan. */
  get = (plan: string, o?: CallOptions) => this.t.get<Plan>(p`/v1/admin/plans/${plan}`, o);
  /** Makes or replaces a plan. */
  put = (plan: string, bounds: PlanBounds, o?: CallOptions) => this.t.put<Plan>(p`/v1/admin/plans/${plan}`, bounds, o);
  /** Deletes a plan. */
  delete = (plan: string, o?: CallOptions) => this.t.delete(p`/v1/admin/plans/${plan}`, o);
}

/** The caps of execute_code. */
export class AdminCaps extends Resource {
  /** Shows the caps. */
  get = (o?: CallOptions) => this.t.get<Caps>("/v1/admin/caps", o);
  /** Changes the caps; omitted fields stay unchanged. */
  change = (change: CapsChange, o?: CallOptions) => this.t.patch<Caps>("/v1/admin/caps", change, o);
}

/** The models that the operator offers. */
export class AdminModels extends Resource {
  /** Adds a model. */
  create = (request: NewModel, o?: CallOptions) => this.t.post<Model>("/v1/admin/models", request, o);
  /** Lists models. */
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Model>("/v1/admin/models", query, o);
  /** Shows a model. */
  get = (model: string, o?: CallOptions) => this.t.get<Model>(p`/v1/admin/models/${model}`, o);
  /** Changes a model, from its next request on. */
  change = (model: string, change: ModelChange, o?: CallOptions) => this.t.patch<Model>(p`/v1/admin/models/${model}`, change, o);
  /** Removes a model. */
  delete = (model: string, o?: CallOptions) => this.t.delete(p`/v1/admin/models/${model}`, o);
  /** Asks the model something. */
  test = (model: string, request: ModelTest = {}, o?: CallOptions) => this.t.post<ModelTrial>(p`/v1/admin/models/${model}/test`, request, o);
}

/** The record of a tenant's calls: the callers, their code and the results. */
export class AdminActivity extends Resource {
  /** Lists entries, newest first. */
  list = (tenant: string, query?: ActivityQuery, o?: CallOptions) => this.t.list<Activity>(p`/v1/admin/tenants/${tenant}/activity`, query, o);
}

/** Data of sandboxes on the machine that are not in the database. */
export class AdminOrphans extends Resource {
  /** Lists sandboxes on the machine that have no record. */
  list = (o?: CallOptions) => this.t.get<Orphans>("/v1/admin/sandboxes/orphans", o);
  /** Removes sandboxes on the machine that have no record. */
  reap = (o?: CallOptions) => this.t.delete<Orphans>("/v1/admin/sandboxes/orphans", o);
}

/** Which audit rows are listed. */
export interface AuditQuery extends PageQuery {
  key?: string;
  agent?: string;
  session_id?: string;
  turn_id?: string;
  source?: string;
  exit_status?: string;
  trace_id?: string;
  executed_code_hash?: string;
  metadata?: Record<string, string>;
  since?: string;
  before?: string;
}

/** A tenant's audit trail. */
export class AdminAudit extends Resource {
  /** Lists audit rows, newest first. */
  list = (tenant: string, query?: AuditQuery, o?: CallOptions) => this.t.list<AuditRow>(p`/v1/admin/tenants/${tenant}/audit`, tagged(query), o);
  /** All rows, as NDJSON. */
  export = (tenant: string, query?: SpanQuery, o?: CallOptions) => this.t.download(p`/v1/admin/tenants/${tenant}/audit/export`, o, query);
  /** Seals what is not sealed yet, and checks the whole trail. */
  verify = (tenant: string, check: AuditCheck = {}, o?: CallOptions) => this.t.post<AuditReport>(p`/v1/admin/tenants/${tenant}/audit/verify`, check, o);
  /** Lists the tenants that have an audit trail. */
  trails = (query?: PageQuery, o?: CallOptions) => this.t.list<AuditTrail>("/v1/admin/audit/trails", query, o);
}
