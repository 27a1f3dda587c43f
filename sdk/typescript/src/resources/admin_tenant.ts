import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { Connection, ConnectionChange, Environment, EnvironmentChange, Grant, Key, KeyChange, NewConnection, NewGrant, NewKey } from "../wire.gen.js";

const of = (tenant: string) => p`/v1/admin/tenants/${tenant}`;

/** A tenant's environments. */
export class AdminEnvironments extends Resource {
  /** Makes an environment. */
  create = (tenant: string, request: EnvironmentChange, o?: CallOptions) => this.t.post<Environment>(of(tenant) + "/environments", request, o);
  /** Lists environments. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Environment>(of(tenant) + "/environments", query, o);
  /** Shows an environment. */
  get = (tenant: string, environment: string, o?: CallOptions) => this.t.get<Environment>(of(tenant) + p`/environments/${environment}`, o);
  /** Changes an environment; omitted fields stay unchanged. */
  change = (tenant: string, environment: string, change: EnvironmentChange, o?: CallOptions) =>
    this.t.patch<Environment>(of(tenant) + p`/environments/${environment}`, change, o);
  /** Deletes an environment. */
  delete = (tenant: string, environment: string, o?: CallOptions) => this.t.delete(of(tenant) + p`/environments/${environment}`, o);
}

/** A tenant's API keys. */
export class AdminKeys extends Resource {
  /** The key itself is in this answer alone. */
  create = (tenant: string, request: NewKey, o?: CallOptions) => this.t.post<Key>(of(tenant) + "/keys", request, o);
  /** Lists keys. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Key>(of(tenant) + "/keys", query, o);
  /** Shows a key, without the key itself. */
  get = (tenant: string, key: string, o?: CallOptions) => this.t.get<Key>(of(tenant) + p`/keys/${key}`, o);
  /** Changes a key; omitted fields stay unchanged. */
  change = (tenant: string, key: string, change: KeyChange, o?: CallOptions) => this.t.patch<Key>(of(tenant) + p`/keys/${key}`, change, o);
  /** Revokes a key. */
  revoke = (tenant: string, key: string, o?: CallOptions) => this.t.delete<Key>(of(tenant) + p`/keys/${key}`, o);
}

/** A tenant's connections to storage. */
export class AdminConnections extends Resource {
  /** Makes a connection, after the storage was reached. */
  create = (tenant: string, request: NewConnection, o?: CallOptions) => this.t.post<Connection>(of(tenant) + "/connections", request, o);
  /** Lists connections. */
  list = (tenant: string, query?: PageQuery, o?: CallOptions) => this.t.list<Connection>(of(tenant) + "/connections", query, o);
  /** Shows a connection, without its credentials. */
  get = (tenant: string, connection: string, o?: CallOptions) => this.t.get<Connection>(of(tenant) + p`/connections/${connection}`, o);
  /** Changes a connection; omitted fields stay unchanged. */
  change = (tenant: string, connection: string, change: ConnectionChange, o?: CallOptions) =>
    this.t.patch<Connection>(of(tenant) + p`/connections/${connection}`, change, o);
  /** Deletes a connection that has no grants; the stored files stay. */
  delete = (tenant: string, connection: string, o?: CallOptions) => this.t.delete(of(tenant) + p`/connections/${connection}`, o);
}

/** Grants of a connection. */
export class AdminGrants extends Resource {
  /** Lets an environment or a key mount a connection. */
  create = (tenant: string, connection: string, request: NewGrant, o?: CallOptions) =>
    this.t.post<Grant>(of(tenant) + p`/connections/${connection}/grants`, request, o);
  /** Lists the grants of a connection. */
  list = (tenant: string, connection: string, query?: PageQuery, o?: CallOptions) =>
    this.t.list<Grant>(of(tenant) + p`/connections/${connection}/grants`, query, o);
  /** Removes a grant. */
  delete = (tenant: string, connection: string, grant: string, o?: CallOptions) =>
    this.t.delete(of(tenant) + p`/connections/${connection}/grants/${grant}`, o);
}
