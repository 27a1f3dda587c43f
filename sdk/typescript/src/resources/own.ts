import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type {
  Activity, Approval, Decision, FetchAnswer, FetchRequest, ListModel, ModelKey, ModelList, NewModelKey, NewOwnEnvironment, OwnEnvironment, OwnEnvironmentChange, SearchAnswer, SearchRequest, NewToken, Token, Usage,
} from "../wire.gen.js";

/** The tenant's environments. */
export class Environments extends Resource {
  /** Makes an environment. */
  create(request: NewOwnEnvironment, o?: CallOptions): Promise<OwnEnvironment> {
    return this.t.post("/v1/environments", request, o);
  }

  /** Lists environments. */
  list(query?: PageQuery, o?: CallOptions) {
    return this.t.list<OwnEnvironment>("/v1/environments", query, o);
  }

  /** Shows an environment. */
  get(environment: string, o?: CallOptions): Promise<OwnEnvironment> {
    return this.t.get(p`/v1/environments/${environment}`, o);
  }

  /** Changes an environment; omitted fields stay unchanged. */
  change(environment: string, change: OwnEnvironmentChange, o?: CallOptions): Promise<OwnEnvironment> {
    return this.t.patch(p`/v1/environments/${environment}`, change, o);
  }

  /** Deletes an environment. */
  delete(environment: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/environments/${environment}`, o);
  }
}

/** Short-lived tokens for web pages, which can do less than the key that makes them. */
export class Tokens extends Resource {
  /** The answer alone has the token itself. */
  create(request: NewToken, o?: CallOptions): Promise<Token> {
    return this.t.post("/v1/tokens", request, o);
  }

  /** Lists the tokens that the key has made, without the tokens themselves. */
  list(query?: PageQuery, o?: CallOptions) {
    return this.t.list<Token>("/v1/tokens", query, o);
  }

  /** Ends a token. */
  delete(token: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/tokens/${token}`, o);
  }
}

/** Models that the key may use. */
export class Models extends Resource {
  /** Lists the models. */
  list(o?: CallOptions): Promise<ModelList> {
    return this.t.get("/v1/models", o);
  }

  /** Shows a model. */
  get(model: string, o?: CallOptions): Promise<ListModel> {
    return this.t.get(p`/v1/models/${model}`, o);
  }
}

/** The tenant's own keys of models' providers. */
export class ModelKeys extends Resource {
  /** Lists the models that the tenant has a key of its own for. */
  list(query?: PageQuery, o?: CallOptions) {
    return this.t.list<ModelKey>("/v1/model-keys", query, o);
  }

  /** Gives the tenant a key of its own for a model. */
  put(model: string, request: NewModelKey, o?: CallOptions): Promise<ModelKey> {
    return this.t.put(p`/v1/model-keys/${model}`, request, o);
  }

  /** Uses the operator's key again. */
  delete(model: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/model-keys/${model}`, o);
  }
}

/** The time that is asked for. */
export interface SpanQuery {
  /** RFC 3339; the month so far if left out. */
  since?: string;
  before?: string;
}

/** Selects usage. */
export interface UsageQuery extends SpanQuery {
  /** Adds groups: the usage of each agent, or of each session of an agent. */
  group_by?: "agent" | "session";
  agent?: string;
  session_id?: string;
}

/** Selects entries of the activity. */
export interface ActivityQuery extends PageQuery, SpanQuery {
  /** Id or name of the key. */
  key?: string;
  agent?: string;
  session_id?: string;
  turn_id?: string;
  /** Id or name of the environment. */
  environment?: string;
  sandbox_id?: string;
  thread_id?: string;
  kind?: string;
  source?: string;
  status?: string;
  executed_code_hash?: string;
}

/** The record of calls: the callers, their code and the results. */
export class Activities extends Resource {
  /** Lists the calls of the tenant's keys, agents and sessions, newest first. */
  list(query?: ActivityQuery, o?: CallOptions) {
    return this.t.list<Activity>("/v1/activity", query, o);
  }
}

/** Selects approvals. */
export interface ApprovalQuery extends PageQuery {
  /** Default: pending. */
  status?: string;
  agent?: string;
  session_id?: string;
  response_id?: string;
}

/** Tool calls that wait for a decision. */
export class Approvals extends Resource {
  /** Lists waiting calls, newest first; pass status for decided ones. */
  list(query?: ApprovalQuery, o?: CallOptions) {
    return this.t.list<Approval>("/v1/approvals", query, o);
  }

  /** Shows an approval. */
  get(approval: string, o?: CallOptions): Promise<Approval> {
    return this.t.get(p`/v1/approvals/${approval}`, o);
  }

  /** Approves or denies the call. */
  decide(approval: string, decision: Decision, o?: CallOptions): Promise<Approval> {
    return this.t.post(p`/v1/approvals/${approval}`, decision, o);
  }
}

/** Usage of the tenant. */
export class Usages extends Resource {
  /** Returns what was used between two times; this month if nothing is said. */
  get(query?: UsageQuery, o?: CallOptions): Promise<Usage> {
    return this.t.get("/v1/usage", o, query);
  }
}

/** The web, as agents see it. */
export class Web extends Resource {
  /** Searches the web. */
  search(request: SearchRequest, o?: CallOptions): Promise<SearchAnswer> {
    return this.t.perform("/v1/search", request, o);
  }

  /** Reads pages. */
  fetch(request: FetchRequest, o?: CallOptions): Promise<FetchAnswer> {
    return this.t.perform("/v1/fetch", request, o);
  }
}
