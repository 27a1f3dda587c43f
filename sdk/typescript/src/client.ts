import { Admin } from "./resources/admin.js";
import { Agents } from "./resources/agents.js";
import { Containers } from "./resources/containers.js";
import { Contexts } from "./resources/contexts.js";
import { Executions, type ExecuteOptions } from "./resources/executions.js";
import { Files } from "./resources/files.js";
import { Activities, Approvals, Environments, ModelKeys, Models, Tokens, Usages, Web } from "./resources/own.js";
import { Responses } from "./resources/responses.js";
import { Sandboxes, Snapshots } from "./resources/sandboxes.js";
import { Sessions } from "./resources/sessions.js";
import { Skills } from "./resources/skills.js";
import { Storage, Threads } from "./resources/threads.js";
import { Tools } from "./resources/tools.js";
import { Vaults } from "./resources/vaults.js";
import { SandboxHandle } from "./sandbox.js";
import { Transport, type ClientOptions } from "./transport.js";
import type { ExecuteRequest, ExecuteResponse, NewSandbox } from "./wire.gen.js";

/**
 * Atoll calls one server with one key.
 *
 *     const client = new Atoll({ baseUrl: "http://127.0.0.1:8080", apiKey: "sk-atoll-…" });
 *     const { stdout } = await client.execute("print(6 * 7)");
 */
export class Atoll {
  readonly executions: Executions;
  readonly threads: Threads;
  readonly storage: Storage;
  readonly files: Files;
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly contexts: Contexts;
  readonly tools: Tools;
  readonly responses: Responses;
  readonly agents: Agents;
  readonly sessions: Sessions;
  readonly skills: Skills;
  readonly vaults: Vaults;
  readonly containers: Containers;
  readonly environments: Environments;
  readonly models: Models;
  readonly modelKeys: ModelKeys;
  readonly tokens: Tokens;
  readonly usage: Usages;
  readonly activity: Activities;
  readonly approvals: Approvals;
  readonly web: Web;
  readonly admin: Admin;
  private readonly transport: Transport;

  constructor(options: ClientOptions = {}) {
    const t = (this.transport = new Transport(options));
    this.executions = new Executions(t);
    this.threads = new Threads(t);
    this.storage = new Storage(t);
    this.files = new Files(t);
    this.sandboxes = new Sandboxes(t);
    this.snapshots = new Snapshots(t);
    this.contexts = new Contexts(t);
    this.tools = new Tools(t);
    this.responses = new Responses(t);
    this.agents = new Agents(t);
    this.sessions = new Sessions(t);
    this.skills = new Skills(t);
    this.vaults = new Vaults(t);
    this.containers = new Containers(t);
    this.environments = new Environments(t);
    this.models = new Models(t);
    this.modelKeys = new ModelKeys(t);
    this.tokens = new Tokens(t);
    this.usage = new Usages(t);
    this.activity = new Activities(t);
    this.approvals = new Approvals(t);
    this.web = new Web(t);
    this.admin = new Admin(t);
  }

  /** Runs a program, Python unless the request says otherwise, and returns its result. */
  execute(request: string | ExecuteRequest, options?: ExecuteOptions): Promise<ExecuteResponse> {
    return this.executions.run(typeof request === "string" ? { code: request } : request, options);
  }

  /** A sandbox by its name, which is made with the first use. */
  sandbox(name: string, request: Omit<NewSandbox, "name"> = {}): SandboxHandle {
    return new SandboxHandle(this.sandboxes, this.contexts, { ...request, name });
  }

  /** Waits for what goes on after calls that were aborted: their cancelling on the server. */
  close(): Promise<void> {
    return this.transport.settled();
  }

  /** Ends the client, as close does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
