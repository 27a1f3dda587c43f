import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { Agent, AgentChange, AgentCopy, DeletedAgent, NewAgent } from "../wire.gen.js";

/** Which agents are listed. */
export interface AgentQuery extends PageQuery {
  include_archived?: boolean;
  "created_at[gte]"?: string;
  "created_at[lte]"?: string;
}

/** Agents, by id or slug. */
export class Agents extends Resource {
  /** Makes an agent. */
  create(request: NewAgent, o?: CallOptions): Promise<Agent> {
    return this.t.create("/v1/agents", request, o);
  }

  /** Lists agents. */
  list(query?: AgentQuery, o?: CallOptions) {
    return this.t.list<Agent>("/v1/agents", query, o);
  }

  /** Shows an agent by its id or slug, in a version or the current one. */
  get(agent: string, o?: CallOptions): Promise<Agent> {
    return this.t.get(p`/v1/agents/${agent}`, o);
  }

  /** Makes another version. */
  change(agent: string, change: AgentChange, o?: CallOptions): Promise<Agent> {
    return this.t.patch(p`/v1/agents/${agent}`, change, o);
  }

  /** Ends an agent; sessions with it go on. */
  archive(agent: string, o?: CallOptions): Promise<Agent> {
    return this.t.post(p`/v1/agents/${agent}/archive`, undefined, o);
  }

  /** Deletes an agent with its versions. An agent that has sessions is a conflict. */
  delete(agent: string, o?: CallOptions): Promise<DeletedAgent> {
    return this.t.delete(p`/v1/agents/${agent}`, o);
  }

  /** Makes another agent like this one. */
  copy(agent: string, copy: AgentCopy = {}, o?: CallOptions): Promise<Agent> {
    return this.t.create(p`/v1/agents/${agent}/copy`, copy, o);
  }

  /** Lists the versions of an agent. */
  versions(agent: string, query?: PageQuery, o?: CallOptions) {
    return this.t.list<Agent>(p`/v1/agents/${agent}/versions`, query, o);
  }

  /** Shows a version of an agent. */
  version(agent: string, version: number | string, o?: CallOptions): Promise<Agent> {
    return this.t.get(p`/v1/agents/${agent}/versions/${version}`, o);
  }
}
