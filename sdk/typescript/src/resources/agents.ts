import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { Agent, AgentChange, AgentCopy, NewAgent } from "../wire.gen.js";

export interface AgentQuery extends PageQuery {
  include_archived?: boolean;
  "created_at[gte]"?: string;
  "created_at[lte]"?: string;
}

/** Agents, by id or slug. */
export class Agents extends Resource {
  create(request: NewAgent, o?: CallOptions): Promise<Agent> {
    return this.t.create("/v1/agents", request, o);
  }

  list(query?: AgentQuery, o?: CallOptions) {
    return this.t.list<Agent>("/v1/agents", query, o);
  }

  get(agent: string, o?: CallOptions): Promise<Agent> {
    return this.t.get(p`/v1/agents/${agent}`, o);
  }

  /** Makes another version. */
  change(agent: string, change: AgentChange, o?: CallOptions): Promise<Agent> {
    return this.t.patch(p`/v1/agents/${agent}`, change, o);
  }

  archive(agent: string, o?: CallOptions): Promise<Agent> {
    return this.t.post(p`/v1/agents/${agent}/archive`, undefined, o);
  }

  copy(agent: string, copy: AgentCopy = {}, o?: CallOptions): Promise<Agent> {
    return this.t.create(p`/v1/agents/${agent}/copy`, copy, o);
  }

  versions(agent: string, query?: PageQuery, o?: CallOptions) {
    return this.t.list<Agent>(p`/v1/agents/${agent}/versions`, query, o);
  }

  version(agent: string, version: number | string, o?: CallOptions): Promise<Agent> {
    return this.t.get(p`/v1/agents/${agent}/versions/${version}`, o);
  }
}
