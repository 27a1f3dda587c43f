import type { Content } from "./body.js";
import type { StreamOptions } from "./stream.js";
import type { Contexts } from "./resources/contexts.js";
import type { Command, ExecOptions, ExecResult } from "./resources/exec.js";
import type { Sandboxes } from "./resources/sandboxes.js";
import type { TerminalOptions } from "./resources/terminal.js";
import type { FollowOptions } from "./resources/processes.js";
import type { CallOptions } from "./transport.js";
import type { CodeResult, NetworkChange, NewProcess, NewSandbox, RunCode, Sandbox as SandboxRecord, SandboxChange, SandboxProcess, SandboxTimeout, Snapshot } from "./wire.gen.js";

type Ready = <O extends CallOptions>(o?: O) => Promise<O & { session: string | undefined }>;

/** Files of a sandbox by its name. The first use makes the sandbox. */
export class SandboxHandleFiles {
  constructor(
    private readonly all: Sandboxes,
    private readonly name: string,
    private readonly ready: Ready,
  ) {}

  /** Opens a file, to read its body as a stream. */
  async open(path: string, o?: CallOptions): Promise<Response> {
    return this.all.files.read(this.name, path, await this.ready(o));
  }

  /** Returns the bytes of a file. */
  async read(path: string, o?: CallOptions): Promise<Uint8Array> {
    return new Uint8Array(await (await this.open(path, o)).arrayBuffer());
  }

  /** Returns the text of a file. */
  async readText(path: string, o?: CallOptions): Promise<string> {
    return (await this.open(path, o)).text();
  }

  /** Writes a file. */
  async write(path: string, content: Content, o?: CallOptions & { append?: boolean; mode?: string }) {
    return this.all.files.write(this.name, path, content, await this.ready(o));
  }

  /** Describes a file or folder. */
  async stat(path: string, o?: CallOptions) {
    return this.all.files.stat(this.name, path, await this.ready(o));
  }

  /** Lists a folder. */
  async list(path = "/home/user", o?: CallOptions & { depth?: number; limit?: number }) {
    return (await this.all.files.list(this.name, path, await this.ready(o))).data;
  }

  /** Makes a folder, and those above it. */
  async makeFolder(path: string, o?: CallOptions) {
    return this.all.files.makeFolder(this.name, path, await this.ready(o));
  }

  /** Renames a file or folder. */
  async move(source: string, target: string, o?: CallOptions & { replace?: boolean }) {
    return this.all.files.move(this.name, source, target, await this.ready(o));
  }

  /** Deletes a file or folder. */
  async delete(path: string, o?: CallOptions & { recursive?: boolean }): Promise<void> {
    return this.all.files.delete(this.name, path, await this.ready(o));
  }

  /** Follows changes of files. */
  async *watch(path = "/home/user", o?: StreamOptions & { recursive?: boolean }): AsyncGenerator<SandboxChange, void, undefined> {
    yield* this.all.files.watch(this.name, path, await this.ready(o));
  }

  /** Opens a file or folder as a tar archive. */
  async pack(path: string, o?: CallOptions): Promise<Response> {
    return this.all.files.pack(this.name, path, await this.ready(o));
  }

  /** Unpacks a tar archive into a folder. */
  async unpack(path: string, archive: Content, o?: CallOptions) {
    return this.all.files.unpack(this.name, path, archive, await this.ready(o));
  }
}

/**
 * A sandbox by its name. It is made with the first use; `await using` destroys it at the end.
 *
 *     await using box = client.sandbox("work");
 *     const { stdout } = await box.run("ls");
 */
export class SandboxHandle {
  readonly name: string;
  readonly session: string | undefined;
  /** Its files. Paths are absolute, or from /home/user. */
  readonly files: SandboxHandleFiles;
  private readonly all: Sandboxes;
  private readonly contexts: Contexts;
  private readonly request: NewSandbox;
  private made: Promise<SandboxRecord> | undefined;

  constructor(all: Sandboxes, contexts: Contexts, request: NewSandbox) {
    this.name = request.name;
    this.session = request.session ?? undefined;
    this.all = all;
    this.contexts = contexts;
    this.request = request;
    this.files = new SandboxHandleFiles(all, this.name, (o) => this.ready(o));
  }

  /** Makes the sandbox, if it is not there. */
  create(): Promise<SandboxRecord> {
    return (this.made ??= this.all.create(this.request).catch((e: unknown) => {
      this.made = undefined;
      throw e;
    }));
  }

  private async ready<O extends CallOptions>(o?: O): Promise<O & { session: string | undefined }> {
    o?.signal?.throwIfAborted();
    await this.create();
    return { ...(o as O), session: this.session };
  }

  /** Runs a command to its end. */
  async run(command: Command, o?: ExecOptions): Promise<ExecResult> {
    return this.all.exec(this.name, command, await this.ready(o));
  }

  /** Runs a command and streams its output. */
  async *stream(command: Command, o?: ExecOptions) {
    yield* this.all.execStream(this.name, command, await this.ready(o));
  }

  /** Starts a program in the background. */
  async start(command: string | NewProcess, o?: CallOptions): Promise<ProcessHandle> {
    const request = typeof command === "string" ? { command } : command;
    return new ProcessHandle(this.all, this.name, this.session, await this.all.processes.start(this.name, request, await this.ready(o)));
  }

  /** Runs code in an interpreter that stays: python, node, bash, or the id of a context. */
  async runCode(code: string | RunCode, o?: CallOptions & { context?: string | undefined }): Promise<CodeResult> {
    return this.contexts.run(this.name, o?.context ?? "python", code, await this.ready(o));
  }

  /** Opens a terminal. */
  async terminal(o?: TerminalOptions) {
    return this.all.terminal(this.name, await this.ready(o));
  }

  /** The URL of a port. */
  async preview(port: number, o?: CallOptions): Promise<string> {
    return (await this.all.previews.open(this.name, port, await this.ready(o))).url;
  }

  /** Lists the ports that programs listen on. */
  async ports(o?: CallOptions) {
    return (await this.all.ports(this.name, await this.ready(o))).data;
  }

  /** Narrows what it may reach of its environment's network. */
  async setNetwork(network: NetworkChange, o?: CallOptions): Promise<SandboxRecord> {
    return this.all.setNetwork(this.name, network, await this.ready(o));
  }

  /** Sets when it sleeps and when it is deleted. */
  async setTimeout(timeout: SandboxTimeout, o?: CallOptions): Promise<SandboxRecord> {
    return this.all.setTimeout(this.name, timeout, await this.ready(o));
  }

  /** Puts it to sleep at once. */
  async sleep(o?: CallOptions): Promise<SandboxRecord> {
    return this.all.sleep(this.name, await this.ready(o));
  }

  /** Ends the sandbox's processes and restarts it with its files and its environment's current image, limits and network. */
  async restart(o?: CallOptions): Promise<SandboxRecord> {
    return this.all.restart(this.name, await this.ready(o));
  }

  /** Copies it, with its processes. */
  async fork(count = 1, o?: CallOptions): Promise<SandboxHandle[]> {
    const copies = await this.all.fork(this.name, { ...(await this.ready(o)), count });
    return copies.map((c) => new SandboxHandle(this.all, this.contexts, { name: c.name, session: c.session }));
  }

  /** Keeps it as it is now. */
  async snapshot(o?: CallOptions & { keep_ms?: number }): Promise<Snapshot> {
    return this.all.snapshot(this.name, await this.ready(o));
  }

  /** The server's record of it. */
  get(o?: CallOptions): Promise<SandboxRecord> {
    return this.all.get(this.name, { ...o, session: this.session });
  }

  /** Destroys it. */
  async delete(o?: CallOptions): Promise<void> {
    this.made = undefined;
    await this.all.delete(this.name, { ...o, session: this.session });
  }

  /** Destroys it, if it was used here. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.made) await this.delete();
  }
}

/** A program in the background of a sandbox. */
export class ProcessHandle {
  readonly id: string;
  readonly started: SandboxProcess;
  private readonly all: Sandboxes;
  private readonly where: [sandbox: string, process: string];
  private readonly session: string | undefined;

  constructor(all: Sandboxes, sandbox: string, session: string | undefined, started: SandboxProcess) {
    this.all = all;
    this.id = started.process_id;
    this.where = [sandbox, this.id];
    this.session = session;
    this.started = started;
  }

  private in = <O extends CallOptions>(o?: O) => ({ ...(o as O), session: this.session });

  /** Follows its output. */
  output = (o?: FollowOptions) => this.all.processes.follow(...this.where, this.in(o));
  /** Shows it as it is now. */
  get = (o?: CallOptions) => this.all.processes.get(...this.where, this.in(o));
  /** Waits for its end. */
  wait = (o?: CallOptions & { timeout_ms?: number }) => this.all.processes.wait(...this.where, this.in(o));
  /** Writes to its standard input. */
  write = (content: Content, o?: CallOptions & { close?: boolean }) => this.all.processes.write(...this.where, content, this.in(o));
  /** Sends it a signal. */
  signal = (signal: string, o?: CallOptions) => this.all.processes.signal(...this.where, signal, this.in(o));
  /** Ends it and all that it started. */
  kill = (o?: CallOptions) => this.all.processes.delete(...this.where, this.in(o));
}
