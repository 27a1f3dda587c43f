import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { Connection, ConnectionChange, Environment, EnvironmentChange, Grant, Key, KeyChange, NewConnection, NewGrant, NewKey } from "../wire.gen.js";

const of = (tenant: string) => p`/v1/admin/tenants/${tenant}`;

export class AdminEnvironments extends Resource {
  create = (tenant: string, request: EnvironmentChange, o?: CallOptions) => this.t.post<Environment>(of(tenant) + "/environments", request, o);
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Environment>(of(tenant) + "/environments", query, o);
  get = (tenant: string, environment: string, o?: CallOptions) => this.t.get<Environment>(of(tenant) + p`/environments/${environment}`, o);
  change = (tenant: string, environment: string, change: EnvironmentChange, o?: CallOptions) =>
    this.t.patch<Environment>(of(tenant) + p`/environments/${environment}`, change, o);
  delete = (tenant: string, environment: string, o?: CallOptions) => this.t.delete(of(tenant) + p`/environments/${environment}`, o);
}

export class AdminKeys extends Resource {
  /** The key itself is in this answer alone. */
  create = (tenant: string, request: NewKey, o?: CallOptions) => this.t.post<Key>(of(tenant) + "/keys", request, o);
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Key>(of(tenant) + "/keys", query, o);
  get = (tenant: string, key: string, o?: CallOptions) => this.t.get<Key>(of(tenant) + p`/keys/${key}`, o);
  change = (tenant: string, key: string, change: KeyChange, o?: CallOptions) => this.t.patch<Key>(of(tenant) + p`/keys/${key}`, change, o);
  revoke = (tenant: string, key: string, o?: CallOptions) => this.t.delete<Key>(of(tenant) + p`/keys/${key}`, o);
}

export class AdminConnections extends Resource {
  create = (tenant: string, request: NewConnection, o?: CallOptions) => this.t.post<Connection>(of(tenant) + "/connections", request, o);
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Connection>(of(tenant) + "/connections", query, o);
  get = (tenant: string, connection: string, o?: CallOptions) => this.t.get<Connection>(of(tenant) + p`/connections/${connection}`, o);
  change = (tenant: string, connection: string, change: ConnectionChange, o?: CallOptions) =>
    this.t.patch<Connection>(of(tenant) + p`/connections/${connection}`, change, o);
  delete = (tenant: string, connection: string, o?: CallOptions) => this.t.delete(of(tenant) + p`/connections/${connection}`, o);
}

export class AdminGrants extends Resource {
  create = (tenant: string, connection: string, request: NewGrant, o?: CallOptions) =>
    this.t.post<Grant>(of(tenant) + p`/connections/${connection}/grants`, request, o);
  list = (tenant: string, connection: string, query?: PageQuery, o?: CallOptions) =>
    this.t.list<Grant>(of(tenant) + p`/connections/${connection}/grants`, query, o);
  delete = (tenant: string, connection: string, grant: string, o?: CallOptions) =>
    this.t.delete(of(tenant) + p`/connections/${connection}/grants/${grant}`, o);
}
