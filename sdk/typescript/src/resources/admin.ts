import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type {
  AuditCheck, AuditReport, AuditRow, AuditTrail, Caps, CapsChange, Model, ModelChange, ModelKey, ModelTest, ModelTrial, NewModel, NewModelKey, NewTenant,
  Orphans, Plan, PlanBounds, PolicyEvent, Redelivery, Template, TemplateChange, Tenant, TenantChange, Usage,
} from "../wire.gen.js";
import { AdminConnections, AdminEnvironments, AdminGrants, AdminKeys } from "./admin_tenant.js";
import { tagged } from "./executions.js";
import type { UsageQuery } from "./own.js";

/** What an operator does, with a key of the scope admin. */
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
  readonly webhooks = new AdminWebhooks(this.t);
  readonly plans = new AdminPlans(this.t);
  readonly caps = new AdminCaps(this.t);
  readonly models = new AdminModels(this.t);
  readonly orphans = new AdminOrphans(this.t);
  readonly audit = new AdminAudit(this.t);
}

export class AdminTenants extends Resource {
  create = (request: NewTenant, o?: CallOptions) => this.t.post<Tenant>("/v1/admin/tenants", request, o);
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Tenant>("/v1/admin/tenants", query, o);
  get = (tenant: string, o?: CallOptions) => this.t.get<Tenant>(p`/v1/admin/tenants/${tenant}`, o);
  change = (tenant: string, change: TenantChange, o?: CallOptions) => this.t.patch<Tenant>(p`/v1/admin/tenants/${tenant}`, change, o);
}

export class AdminTemplates extends Resource {
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Template>(p`/v1/admin/tenants/${tenant}/templates`, query, o);
  get = (tenant: string, template: string, o?: CallOptions) => this.t.get<Template>(p`/v1/admin/tenants/${tenant}/templates/${template}`, o);
  put = (tenant: string, template: string, change: TemplateChange, o?: CallOptions) =>
    this.t.put<Template>(p`/v1/admin/tenants/${tenant}/templates/${template}`, change, o);
  delete = (tenant: string, template: string, o?: CallOptions) => this.t.delete(p`/v1/admin/tenants/${tenant}/templates/${template}`, o);
}

export class AdminModelKeys extends Resource {
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<ModelKey>(p`/v1/admin/tenants/${tenant}/model-keys`, query, o);
  put = (tenant: string, model: string, request: NewModelKey, o?: CallOptions) =>
    this.t.put<ModelKey>(p`/v1/admin/tenants/${tenant}/model-keys/${model}`, request, o);
  delete = (tenant: string, model: string, o?: CallOptions) => this.t.delete(p`/v1/admin/tenants/${tenant}/model-keys/${model}`, o);
}

export class AdminPolicyEvents extends Resource {
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<PolicyEvent>(p`/v1/admin/tenants/${tenant}/policy-events`, query, o);
}

export class AdminUsage extends Resource {
  get = (tenant: string, query?: UsageQuery, o?: CallOptions) => this.t.get<Usage>(p`/v1/admin/tenants/${tenant}/usage`, o, query);
}

export class AdminWebhooks extends Resource {
  /** Sends an execution's message once more. */
  redeliver = (tenant: string, traceId: string, o?: CallOptions) =>
    this.t.post<Redelivery>(p`/v1/admin/tenants/${tenant}/executions/${traceId}/webhook`, undefined, o);
}

export class AdminPlans extends Resource {
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Plan>("/v1/admin/plans", query, o);
  get = (plan: string, o?: CallOptions) => this.t.get<Plan>(p`/v1/admin/plans/${plan}`, o);
  put = (plan: string, bounds: PlanBounds, o?: CallOptions) => this.t.put<Plan>(p`/v1/admin/plans/${plan}`, bounds, o);
  delete = (plan: string, o?: CallOptions) => this.t.delete(p`/v1/admin/plans/${plan}`, o);
}

export class AdminCaps extends Resource {
  get = (o?: CallOptions) => this.t.get<Caps>("/v1/admin/caps", o);
  change = (change: CapsChange, o?: CallOptions) => this.t.patch<Caps>("/v1/admin/caps", change, o);
}

export class AdminModels extends Resource {
  create = (request: NewModel, o?: CallOptions) => this.t.post<Model>("/v1/admin/models", request, o);
  list = (query?: PageQuery, o?: CallOptions) => this.t.list<Model>("/v1/admin/models", query, o);
  get = (model: string, o?: CallOptions) => this.t.get<Model>(p`/v1/admin/models/${model}`, o);
  change = (model: string, change: ModelChange, o?: CallOptions) => this.t.patch<Model>(p`/v1/admin/models/${model}`, change, o);
  delete = (model: string, o?: CallOptions) => this.t.delete(p`/v1/admin/models/${model}`, o);
  /** Asks the model something. */
  test = (model: string, request: ModelTest = {}, o?: CallOptions) => this.t.post<ModelTrial>(p`/v1/admin/models/${model}/test`, request, o);
}

/** What is on the machine and in no record. */
export class AdminOrphans extends Resource {
  list = (o?: CallOptions) => this.t.get<Orphans>("/v1/admin/sandboxes/orphans", o);
  reap = (o?: CallOptions) => this.t.delete<Orphans>("/v1/admin/sandboxes/orphans", o);
}

export interface AuditQuery extends PageQuery {
  key?: string;
  agent?: string;
  session_id?: string;
  source?: string;
  exit_status?: string;
  trace_id?: string;
  executed_code_hash?: string;
  metadata?: Record<string, string>;
  since?: string;
  before?: string;
}

export class AdminAudit extends Resource {
  list = (tenant: string, query?: AuditQuery, o?: CallOptions) => this.t.list<AuditRow>(p`/v1/admin/tenants/${tenant}/audit`, tagged(query), o);
  /** All rows, as NDJSON. */
  export = (tenant: string, query?: UsageQuery, o?: CallOptions) => this.t.download(p`/v1/admin/tenants/${tenant}/audit/export`, o, query);
  verify = (tenant: string, check: AuditCheck = {}, o?: CallOptions) => this.t.post<AuditReport>(p`/v1/admin/tenants/${tenant}/audit/verify`, check, o);
  trails = (query?: PageQuery, o?: CallOptions) => this.t.list<AuditTrail>("/v1/admin/audit/trails", query, o);
}
