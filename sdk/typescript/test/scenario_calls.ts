import type { Atoll, Content, List, SkillFolder } from "../src/index.js";

/** Arguments by the names of the wire. */
export type Args = Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any

/** What a call was told by its step. */
export interface Told {
  signal: AbortSignal;
  timeout?: number;
  maxRetries?: number;
  reconnect?: boolean;
}

/** A call of the scenarios: its answer, or a stream of events. */
export type Call = (c: Atoll, a: Args, o: Told) => unknown;

/** part splits arguments into those that are named and the rest, which is the body or query. */
function part<N extends string>(a: Args, ...names: N[]): [Record<N, any>, any] {
  const rest = { ...a };
  const named: Args = {};
  for (const n of names) {
    named[n] = rest[n];
    delete rest[n];
  }
  return [named as Record<N, any>, rest];
}

const items = async (list: List<unknown>) => ({ data: await list.all() });

async function* zeros(n: number): AsyncGenerator<Uint8Array> {
  const block = new Uint8Array(1 << 16);
  for (let sent = 0; sent < n; sent += block.length) yield n - sent < block.length ? block.subarray(0, n - sent) : block;
}

/** content is that of an upload. */
function content(a: Args): Content {
  if (a.zeros !== undefined) return zeros(a.zeros as number);
  if (a.content_base64 !== undefined) return Buffer.from(a.content_base64 as string, "base64");
  return a.content as string;
}

/** inSandbox gives a call its sandbox, its other arguments, and options with its session. */
const inSandbox =
  (call: (c: Atoll, sandbox: string, rest: Args, o: Told & { session?: string }) => unknown): Call =>
  (c, a, o) => {
    const [{ sandbox, session }, rest] = part(a, "sandbox", "session");
    return call(c, sandbox as string, rest as Args, { ...o, session });
  };

/** inProcess does so with a process. */
const inProcess = (call: (c: Atoll, sandbox: string, process: string, rest: Args, o: Told & { session?: string }) => unknown): Call =>
  inSandbox((c, sandbox, a, o) => {
    const [{ process }, rest] = part(a, "process");
    return call(c, sandbox, process as string, rest as Args, o);
  });

const inContext = (call: (c: Atoll, sandbox: string, context: string, rest: Args, o: Told & { session?: string }) => unknown): Call =>
  inSandbox((c, sandbox, a, o) => {
    const [{ context }, rest] = part(a, "context");
    return call(c, sandbox, context as string, rest as Args, o);
  });

/** of gives a call one named argument and the rest. */
const of =
  (name: string, call: (c: Atoll, value: string, rest: any, o: Told) => unknown): Call =>
  (c, a, o) => {
    const [named, rest] = part(a, name);
    return call(c, named[name] as string, rest, o);
  };

/** ofTenant gives a call the tenant, another argument, and the rest. */
const ofTenant = (name: string, call: (c: Atoll, tenant: string, value: string, rest: any, o: Told) => unknown): Call =>
  of("tenant", (c, tenant, a, o) => {
    const [named, rest] = part(a as Args, name);
    return call(c, tenant, named[name] as string, rest, o);
  });

const keyed =
  (call: (c: Atoll, request: any, o: Told & { idempotencyKey?: string }) => unknown): Call =>
  (c, a, o) => {
    const [{ idempotency_key }, request] = part(a, "idempotency_key");
    return call(c, request, { ...o, idempotencyKey: idempotency_key });
  };

const tool = (name: string): Call => (c, a, o) => {
  const [{ session, agent, template }, input] = part(a, "session", "agent", "template");
  const method = c.tools as unknown as Record<string, (input: unknown, o: unknown) => unknown>;
  const options = { ...o, session, agent, template };
  return name === "sandboxList" ? c.tools.sandboxList(options) : method[name]!(input, options);
};

async function terminal(c: Atoll, sandbox: string, { input, ...size }: Args, o: Told & { session?: string }): Promise<unknown> {
  const t = await c.sandboxes.terminal(sandbox, { ...o, ...size });
  t.write(input as string);
  const shown: Uint8Array[] = [];
  for await (const bytes of t) shown.push(bytes);
  return { output: Buffer.concat(shown).toString(), exit_code: (await t.exited).exit_code };
}

/** calls are the public methods by their names in the scenarios. */
export const calls: Record<string, Call> = {
  "executions.run": keyed((c, r, o) => c.executions.run(r, o)),
  "executions.start": keyed((c, r, o) => c.executions.start(r, o)),
  "executions.stream": keyed((c, r, o) => c.executions.stream(r, o)),
  "executions.list": (c, a, o) => items(c.executions.list(a, o)),
  "executions.get": of("trace_id", (c, id, _, o) => c.executions.get(id, o)),
  "executions.cancel": of("trace_id", (c, id, _, o) => c.executions.cancel(id, o)),
  "executions.delete": of("trace_id", (c, id, _, o) => c.executions.delete(id, o)),
  "executions.follow": of("trace_id", (c, id, q, o) => c.executions.follow(id, { ...o, ...q })),
  "executions.output": (c, a, o) => c.executions.output(a.trace_id, a.stream, o),
  "executions.file": (c, a, o) => c.executions.file(a.trace_id, a.path, o),
  "executions.wait": of("trace_id", (c, id, _, o) => c.executions.wait(id, o)),

  "threads.list": (c, a, o) => items(c.threads.list(a, o)),
  "threads.get": of("thread_id", (c, id, _, o) => c.threads.get(id, o)),
  "threads.change": of("thread_id", (c, id, change, o) => c.threads.change(id, change, o)),
  "threads.delete": of("thread_id", (c, id, _, o) => c.threads.delete(id, o)),
  "threads.export": of("thread_id", (c, id, _, o) => c.threads.export(id, o)),
  "threads.import": (c, a, o) => c.threads.import(a.thread_id, content(a), o),
  "threads.files.list": (c, a, o) => items(c.threads.files.list(a.thread_id, a.path, o)),
  "threads.files.read": (c, a, o) => c.threads.files.read(a.thread_id, a.path, o),
  "threads.files.write": (c, a, o) => c.threads.files.write(a.thread_id, a.path, content(a), o),
  "threads.files.delete": (c, a, o) => c.threads.files.delete(a.thread_id, a.path, o),
  "threads.files.sign": of("thread_id", (c, id, r, o) => c.threads.files.sign(id, r, o)),
  "storage.list": (c, a, o) => items(c.storage.list(a as never, o)),
  "storage.upload_url": (c, a, o) => c.storage.uploadUrl(a as never, o),
  "storage.download_url": (c, a, o) => c.storage.downloadUrl(a as never, o),
  "files.upload": (c, a, o) => c.files.upload({ filename: a.filename, content: content(a), expires_in_seconds: a.expires_in_seconds }, o),
  "files.list": (c, a, o) => items(c.files.list(a, o)),
  "files.get": of("file_id", (c, id, _, o) => c.files.get(id, o)),
  "files.content": of("file_id", (c, id, _, o) => c.files.content(id, o)),
  "files.delete": of("file_id", (c, id, _, o) => c.files.delete(id, o)),

  "sandboxes.create": (c, a, o) => c.sandboxes.create(a as never, o),
  "sandboxes.list": (c, a, o) => items(c.sandboxes.list(a, o)),
  "sandboxes.get": inSandbox((c, s, _, o) => c.sandboxes.get(s, o)),
  "sandboxes.delete": inSandbox((c, s, _, o) => c.sandboxes.delete(s, o)),
  "sandboxes.sleep": inSandbox((c, s, _, o) => c.sandboxes.sleep(s, o)),
  "sandboxes.restart": inSandbox((c, s, _, o) => c.sandboxes.restart(s, o)),
  "sandboxes.fork": inSandbox(async (c, s, a, o) => ({ data: await c.sandboxes.fork(s, { ...o, ...a }) })),
  "sandboxes.snapshot": inSandbox((c, s, a, o) => c.sandboxes.snapshot(s, { ...o, ...a })),
  "sandboxes.set_network": inSandbox((c, s, a, o) => c.sandboxes.setNetwork(s, a, o)),
  "sandboxes.set_timeout": inSandbox((c, s, a, o) => c.sandboxes.setTimeout(s, a, o)),
  "sandboxes.metrics": inSandbox((c, s, _, o) => c.sandboxes.metrics(s, o)),
  "sandboxes.ports": inSandbox((c, s, _, o) => items(c.sandboxes.ports(s, o))),
  "sandboxes.exec": inSandbox((c, s, a, o) => c.sandboxes.exec(s, a, o)),
  "sandboxes.exec_stream": inSandbox((c, s, a, o) => c.sandboxes.execStream(s, a, o)),
  "sandboxes.terminal": inSandbox(terminal),
  "sandboxes.terminal_ticket": inSandbox((c, s, _, o) => c.sandboxes.terminalTicket(s, o)),
  "sandboxes.files.read": inSandbox((c, s, a, o) => c.sandboxes.files.read(s, a.path, o)),
  "sandboxes.files.write": inSandbox((c, s, a, o) => c.sandboxes.files.write(s, a.path, content(a), { ...o, append: a.append, mode: a.mode })),
  "sandboxes.files.delete": inSandbox((c, s, a, o) => c.sandboxes.files.delete(s, a.path, { ...o, recursive: a.recursive })),
  "sandboxes.files.list": inSandbox((c, s, a, o) => c.sandboxes.files.list(s, a.path, { ...o, depth: a.depth })),
  "sandboxes.files.stat": inSandbox((c, s, a, o) => c.sandboxes.files.stat(s, a.path, o)),
  "sandboxes.files.make_directory": inSandbox((c, s, a, o) => c.sandboxes.files.makeFolder(s, a.path, o)),
  "sandboxes.files.move": inSandbox((c, s, a, o) => c.sandboxes.files.move(s, a.from, a.to, { ...o, replace: a.replace })),
  "sandboxes.files.watch": inSandbox((c, s, a, o) => c.sandboxes.files.watch(s, a.path, { ...o, recursive: a.recursive })),
  "sandboxes.files.pack": inSandbox((c, s, a, o) => c.sandboxes.files.pack(s, a.path, o)),
  "sandboxes.files.unpack": inSandbox((c, s, a, o) => c.sandboxes.files.unpack(s, a.path, content(a), o)),
  "sandboxes.processes.start": inSandbox((c, s, a, o) => c.sandboxes.processes.start(s, a, o)),
  "sandboxes.processes.list": inSandbox((c, s, _, o) => items(c.sandboxes.processes.list(s, o))),
  "sandboxes.processes.get": inProcess((c, s, id, _, o) => c.sandboxes.processes.get(s, id, o)),
  "sandboxes.processes.wait": inProcess((c, s, id, a, o) => c.sandboxes.processes.wait(s, id, { ...o, ...a })),
  "sandboxes.processes.follow": inProcess((c, s, id, a, o) => c.sandboxes.processes.follow(s, id, { ...o, ...a })),
  "sandboxes.processes.signal": inProcess((c, s, id, a, o) => c.sandboxes.processes.signal(s, id, a as never, o)),
  "sandboxes.processes.write": inProcess((c, s, id, a, o) => c.sandboxes.processes.write(s, id, content(a), { ...o, close: a.close })),
  "sandboxes.processes.delete": inProcess((c, s, id, _, o) => c.sandboxes.processes.delete(s, id, o)),
  "sandboxes.processes.kill_all": inSandbox((c, s, _, o) => c.sandboxes.processes.killAll(s, o)),
  "sandboxes.previews.list": inSandbox((c, s, _, o) => items(c.sandboxes.previews.list(s, o))),
  "sandboxes.previews.open": inSandbox((c, s, a, o) => c.sandboxes.previews.open(s, a.port, o)),
  "sandboxes.previews.close": inSandbox((c, s, a, o) => c.sandboxes.previews.close(s, a.port, o)),
  "snapshots.list": (c, a, o) => items(c.snapshots.list(a, o)),
  "snapshots.get": of("snapshot", (c, id, _, o) => c.snapshots.get(id, o)),
  "snapshots.delete": of("snapshot", (c, id, _, o) => c.snapshots.delete(id, o)),
  "contexts.create": inSandbox((c, s, a, o) => c.contexts.create(s, a as never, o)),
  "contexts.list": inSandbox((c, s, _, o) => items(c.contexts.list(s, o))),
  "contexts.get": inContext((c, s, id, _, o) => c.contexts.get(s, id, o)),
  "contexts.run": inContext((c, s, id, a, o) => c.contexts.run(s, id, a as never, o)),
  "contexts.stream": inContext((c, s, id, a, o) => c.contexts.stream(s, id, a as never, o)),
  "contexts.interrupt": inContext((c, s, id, _, o) => c.contexts.interrupt(s, id, o)),
  "contexts.restart": inContext((c, s, id, _, o) => c.contexts.restart(s, id, o)),
  "contexts.delete": inContext((c, s, id, _, o) => c.contexts.delete(s, id, o)),

  "tools.list": (c, a, o) => c.tools.list(a, o),
  "tools.browse": tool("browse"),
  "tools.execute_code": tool("executeCode"),
  "tools.glob": tool("glob"),
  "tools.read_file": tool("readFile"),
  "tools.sandbox_create": tool("sandboxCreate"),
  "tools.sandbox_list": tool("sandboxList"),
  "tools.shell": tool("shell"),
  "tools.transfer": tool("transfer"),
  "tools.write_file": tool("writeFile"),
  "tools.run_code": (c, a, o) => c.tools.runCode(a as never, o),
  "tools.end_turn": (c, a, o) => c.tools.endTurn(a.agent, a.turn, o),

  "responses.create": (c, a, o) => c.responses.create(a, o),
  "responses.stream": (c, a, o) => c.responses.stream(a, o),
  "responses.get": of("response_id", (c, id, q, o) => c.responses.get(id, q, o)),
  "responses.follow": of("response_id", (c, id, q, o) => c.responses.follow(id, { ...o, ...q })),
  "responses.cancel": of("response_id", (c, id, _, o) => c.responses.cancel(id, o)),
  "responses.delete": of("response_id", (c, id, _, o) => c.responses.delete(id, o)),
  "responses.inputs": of("response_id", (c, id, q, o) => items(c.responses.inputs(id, q, o))),
  "responses.files": of("response_id", (c, id, _, o) => items(c.responses.files(id, o))),
  "responses.file": (c, a, o) => c.responses.file(a.response_id, a.file_id, o),

  "agents.create": (c, a, o) => c.agents.create(a as never, o),
  "agents.list": (c, a, o) => items(c.agents.list(a, o)),
  "agents.get": of("agent", (c, id, _, o) => c.agents.get(id, o)),
  "agents.change": of("agent", (c, id, change, o) => c.agents.change(id, change, o)),
  "agents.archive": of("agent", (c, id, _, o) => c.agents.archive(id, o)),
  "agents.delete": of("agent", (c, id, _, o) => c.agents.delete(id, o)),
  "agents.copy": of("agent", (c, id, copy, o) => c.agents.copy(id, copy, o)),
  "agents.versions": of("agent", (c, id, q, o) => items(c.agents.versions(id, q, o))),
  "agents.version": (c, a, o) => c.agents.version(a.agent, a.version, o),

  "sessions.create": (c, a, o) => c.sessions.create(a as never, o),
  "sessions.list": (c, a, o) => items(c.sessions.list(a, o)),
  "sessions.get": of("session_id", (c, id, _, o) => c.sessions.get(id, o)),
  "sessions.change": of("session_id", (c, id, change, o) => c.sessions.change(id, change, o)),
  "sessions.delete": of("session_id", (c, id, _, o) => c.sessions.delete(id, o)),
  "sessions.archive": of("session_id", (c, id, _, o) => c.sessions.archive(id, o)),
  "sessions.context": of("session_id", (c, id, _, o) => c.sessions.context(id, o)),
  "sessions.interrupt": of("session_id", (c, id, _, o) => c.sessions.interrupt(id, o)),
  "sessions.send": of("session_id", (c, id, e, o) => c.sessions.send(id, e, o)),
  "sessions.start": of("session_id", (c, id, e, o) => c.sessions.start(id, e, o)),
  "sessions.stream": of("session_id", (c, id, { deltas, ...e }, o) => c.sessions.stream(id, e, { ...o, deltas })),
  "sessions.follow": of("session_id", (c, id, q, o) => c.sessions.follow(id, { ...o, ...q })),
  "sessions.events": of("session_id", (c, id, q, o) => items(c.sessions.events(id, q, o))),
  "sessions.files": of("session_id", (c, id, q, o) => items(c.sessions.files(id, q, o))),
  "sessions.file": (c, a, o) => c.sessions.file(a.session_id, a.file_id, o),
  "sessions.threads": of("session_id", (c, id, q, o) => items(c.sessions.threads(id, q, o))),
  "sessions.thread": (c, a, o) => c.sessions.thread(a.session_id, a.thread_id, o),
  "sessions.thread_events": (c, a, o) => items(c.sessions.threadEvents(a.session_id, a.thread_id, {}, o)),
  "sessions.thread_follow": (c, a, o) => c.sessions.threadFollow(a.session_id, a.thread_id, o),

  "skills.create": (c, a, o) => c.skills.create(a.skill_files as SkillFolder, { ...o, display_name: a.display_name }),
  "skills.list": (c, a, o) => items(c.skills.list(a, o)),
  "skills.get": of("skill_id", (c, id, _, o) => c.skills.get(id, o)),
  "skills.archive": of("skill_id", (c, id, _, o) => c.skills.archive(id, o)),
  "skills.delete": of("skill_id", (c, id, _, o) => c.skills.delete(id, o)),
  "skills.versions.create": (c, a, o) => c.skills.versions.create(a.skill_id, a.skill_files as SkillFolder, o),
  "skills.versions.list": of("skill_id", (c, id, q, o) => items(c.skills.versions.list(id, q, o))),
  "skills.versions.get": (c, a, o) => c.skills.versions.get(a.skill_id, a.version, o),
  "skills.versions.content": (c, a, o) => c.skills.versions.content(a.skill_id, a.version, o),
  "skills.versions.delete": (c, a, o) => c.skills.versions.delete(a.skill_id, a.version, o),

  "vaults.create": (c, a, o) => c.vaults.create(a as never, o),
  "vaults.list": (c, a, o) => items(c.vaults.list(a, o)),
  "vaults.get": of("vault_id", (c, id, _, o) => c.vaults.get(id, o)),
  "vaults.change": of("vault_id", (c, id, change, o) => c.vaults.change(id, change, o)),
  "vaults.archive": of("vault_id", (c, id, _, o) => c.vaults.archive(id, o)),
  "vaults.delete": of("vault_id", (c, id, _, o) => c.vaults.delete(id, o)),
  "vaults.credentials.create": of("vault_id", (c, id, r, o) => c.vaults.credentials.create(id, r, o)),
  "vaults.credentials.list": of("vault_id", (c, id, q, o) => items(c.vaults.credentials.list(id, q, o))),
  "vaults.credentials.get": (c, a, o) => c.vaults.credentials.get(a.vault_id, a.credential_id, o),
  "vaults.credentials.change": (c, a, o) => {
    const [{ vault_id, credential_id }, change] = part(a, "vault_id", "credential_id");
    return c.vaults.credentials.change(vault_id, credential_id, change, o);
  },
  "vaults.credentials.archive": (c, a, o) => c.vaults.credentials.archive(a.vault_id, a.credential_id, o),
  "vaults.credentials.delete": (c, a, o) => c.vaults.credentials.delete(a.vault_id, a.credential_id, o),

  "containers.create": (c, a, o) => c.containers.create(a as never, o),
  "containers.list": (c, a, o) => items(c.containers.list(a, o)),
  "containers.get": of("container_id", (c, id, _, o) => c.containers.get(id, o)),
  "containers.delete": of("container_id", (c, id, _, o) => c.containers.delete(id, o)),
  "containers.files.create": (c, a, o) => c.containers.files.create(a.container_id, { filename: a.filename, content: content(a) }, o),
  "containers.files.list": of("container_id", (c, id, q, o) => items(c.containers.files.list(id, q, o))),
  "containers.files.get": (c, a, o) => c.containers.files.get(a.container_id, a.file_id, o),
  "containers.files.content": (c, a, o) => c.containers.files.content(a.container_id, a.file_id, o),
  "containers.files.delete": (c, a, o) => c.containers.files.delete(a.container_id, a.file_id, o),

  "tokens.create": (c, a, o) => c.tokens.create(a as never, o),
  "tokens.list": (c, a, o) => items(c.tokens.list(a, o)),
  "tokens.delete": of("token_id", (c, id, _, o) => c.tokens.delete(id, o)),
  "environments.create": (c, a, o) => c.environments.create(a as never, o),
  "environments.list": (c, a, o) => items(c.environments.list(a, o)),
  "environments.get": of("environment", (c, id, _, o) => c.environments.get(id, o)),
  "environments.change": of("environment", (c, id, change, o) => c.environments.change(id, change, o)),
  "environments.delete": of("environment", (c, id, _, o) => c.environments.delete(id, o)),
  "models.list": (c, _, o) => c.models.list(o),
  "models.get": of("model", (c, id, _, o) => c.models.get(id, o)),
  "model_keys.list": (c, a, o) => items(c.modelKeys.list(a, o)),
  "model_keys.put": of("model", (c, id, r, o) => c.modelKeys.put(id, r, o)),
  "model_keys.delete": of("model", (c, id, _, o) => c.modelKeys.delete(id, o)),
  "usage.get": (c, a, o) => c.usage.get(a, o),
  "approvals.list": (c, a, o) => items(c.approvals.list(a, o)),
  "approvals.get": of("approval_id", (c, id, _, o) => c.approvals.get(id, o)),
  "approvals.decide": of("approval_id", (c, id, decision, o) => c.approvals.decide(id, decision, o)),
  "activity.list": (c, a, o) => items(c.activity.list(a, o)),
  "web.search": (c, a, o) => c.web.search(a as never, o),
  "web.fetch": (c, a, o) => c.web.fetch(a as never, o),

  "admin.tenants.create": (c, a, o) => c.admin.tenants.create(a as never, o),
  "admin.tenants.list": (c, a, o) => items(c.admin.tenants.list(a, o)),
  "admin.tenants.get": of("tenant", (c, t, _, o) => c.admin.tenants.get(t, o)),
  "admin.tenants.change": of("tenant", (c, t, change, o) => c.admin.tenants.change(t, change, o)),
  "admin.tenants.delete": of("tenant", (c, t, _, o) => c.admin.tenants.delete(t, o)),
  "admin.environments.create": of("tenant", (c, t, r, o) => c.admin.environments.create(t, r, o)),
  "admin.environments.list": of("tenant", (c, t, q, o) => items(c.admin.environments.list(t, q, o))),
  "admin.environments.get": ofTenant("environment", (c, t, e, _, o) => c.admin.environments.get(t, e, o)),
  "admin.environments.change": ofTenant("environment", (c, t, e, change, o) => c.admin.environments.change(t, e, change, o)),
  "admin.environments.delete": ofTenant("environment", (c, t, e, _, o) => c.admin.environments.delete(t, e, o)),
  "admin.keys.create": of("tenant", (c, t, r, o) => c.admin.keys.create(t, r, o)),
  "admin.keys.list": of("tenant", (c, t, q, o) => items(c.admin.keys.list(t, q, o))),
  "admin.keys.get": ofTenant("key", (c, t, k, _, o) => c.admin.keys.get(t, k, o)),
  "admin.keys.change": ofTenant("key", (c, t, k, change, o) => c.admin.keys.change(t, k, change, o)),
  "admin.keys.revoke": ofTenant("key", (c, t, k, _, o) => c.admin.keys.revoke(t, k, o)),
  "admin.connections.create": of("tenant", (c, t, r, o) => c.admin.connections.create(t, r, o)),
  "admin.connections.list": of("tenant", (c, t, q, o) => items(c.admin.connections.list(t, q, o))),
  "admin.connections.get": ofTenant("connection", (c, t, k, _, o) => c.admin.connections.get(t, k, o)),
  "admin.connections.change": ofTenant("connection", (c, t, k, change, o) => c.admin.connections.change(t, k, change, o)),
  "admin.connections.delete": ofTenant("connection", (c, t, k, _, o) => c.admin.connections.delete(t, k, o)),
  "admin.grants.create": ofTenant("connection", (c, t, k, r, o) => c.admin.grants.create(t, k, r, o)),
  "admin.grants.list": ofTenant("connection", (c, t, k, q, o) => items(c.admin.grants.list(t, k, q, o))),
  "admin.grants.delete": ofTenant("connection", (c, t, k, a, o) => c.admin.grants.delete(t, k, a.grant, o)),
  "admin.templates.put": ofTenant("template", (c, t, n, r, o) => c.admin.templates.put(t, n, r, o)),
  "admin.templates.list": of("tenant", (c, t, q, o) => items(c.admin.templates.list(t, q, o))),
  "admin.templates.get": ofTenant("template", (c, t, n, _, o) => c.admin.templates.get(t, n, o)),
  "admin.templates.delete": ofTenant("template", (c, t, n, _, o) => c.admin.templates.delete(t, n, o)),
  "admin.model_keys.put": ofTenant("model", (c, t, m, r, o) => c.admin.modelKeys.put(t, m, r, o)),
  "admin.model_keys.list": of("tenant", (c, t, q, o) => items(c.admin.modelKeys.list(t, q, o))),
  "admin.model_keys.delete": ofTenant("model", (c, t, m, _, o) => c.admin.modelKeys.delete(t, m, o)),
  "admin.policy_events.list": of("tenant", (c, t, q, o) => items(c.admin.policyEvents.list(t, q, o))),
  "admin.usage.get": of("tenant", (c, t, q, o) => c.admin.usage.get(t, q, o)),
  "admin.activity.list": of("tenant", (c, t, q, o) => items(c.admin.activity.list(t, q, o))),
  "admin.webhooks.redeliver": (c, a, o) => c.admin.webhooks.redeliver(a.tenant, a.trace_id, o),
  "admin.plans.put": of("plan", (c, n, r, o) => c.admin.plans.put(n, r, o)),
  "admin.plans.list": (c, a, o) => items(c.admin.plans.list(a, o)),
  "admin.plans.get": of("plan", (c, n, _, o) => c.admin.plans.get(n, o)),
  "admin.plans.delete": of("plan", (c, n, _, o) => c.admin.plans.delete(n, o)),
  "admin.caps.get": (c, _, o) => c.admin.caps.get(o),
  "admin.caps.change": (c, a, o) => c.admin.caps.change(a, o),
  "admin.models.create": (c, a, o) => c.admin.models.create(a as never, o),
  "admin.models.list": (c, a, o) => items(c.admin.models.list(a, o)),
  "admin.models.get": of("model", (c, n, _, o) => c.admin.models.get(n, o)),
  "admin.models.change": of("model", (c, n, change, o) => c.admin.models.change(n, change, o)),
  "admin.models.delete": of("model", (c, n, _, o) => c.admin.models.delete(n, o)),
  "admin.models.test": of("model", (c, n, r, o) => c.admin.models.test(n, r, o)),
  "admin.orphans.list": (c, _, o) => c.admin.orphans.list(o),
  "admin.orphans.reap": (c, _, o) => c.admin.orphans.reap(o),
  "admin.audit.list": of("tenant", (c, t, q, o) => items(c.admin.audit.list(t, q, o))),
  "admin.audit.export": of("tenant", (c, t, q, o) => c.admin.audit.export(t, q, o)),
  "admin.audit.verify": of("tenant", (c, t, r, o) => c.admin.audit.verify(t, r, o)),
  "admin.audit.trails": (c, a, o) => items(c.admin.audit.trails(a, o)),
};
