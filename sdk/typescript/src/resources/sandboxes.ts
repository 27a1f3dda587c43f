import type { PageQuery } from "../list.js";
import { p, Resource, type CallOptions, type Transport } from "../transport.js";
import type {
  NetworkChange, NewSandbox, Preview, Sandbox, SandboxMetrics, SandboxPort, SandboxTimeout, Snapshot, TerminalTicket,
} from "../wire.gen.js";
import { Exec } from "./exec.js";
import { SandboxFilesystem } from "./sandbox_files.js";
import { Processes } from "./processes.js";
import { openTerminal, type Terminal, type TerminalOptions } from "./terminal.js";

/** Options of calls that name a sandbox. */
export interface SandboxOptions extends CallOptions {
  /** The session of the sandbox's name; default if left out. */
  session?: string | undefined;
}

/** within is the query of the session. */
export const within = (o?: SandboxOptions) => ({ session: o?.session });

/** Sandboxes that stay. A sandbox is named by its name in the session, or by its sandbox_id. */
export class Sandboxes extends Resource {
  readonly files: SandboxFilesystem;
  readonly processes: Processes;
  readonly previews: Previews;
  private readonly commands: Exec;
  /** Runs a command to its end. Aborting the call ends the command. */
  readonly exec: Exec["exec"];
  /** Runs a command and streams its output. Aborting the call ends the command. */
  readonly execStream: Exec["stream"];

  constructor(t: Transport) {
    super(t);
    this.files = new SandboxFilesystem(t);
    this.processes = new Processes(t);
    this.previews = new Previews(t);
    this.commands = new Exec(t, this.processes);
    this.exec = this.commands.exec.bind(this.commands);
    this.execStream = this.commands.stream.bind(this.commands);
  }

  /** Makes a sandbox, or returns the one of that name. */
  create(request: NewSandbox, o?: CallOptions): Promise<Sandbox> {
    return this.t.create("/v1/sandboxes", request, o);
  }

  /** Lists sandboxes, those of one session or of all. */
  list(query?: { session?: string }, o?: CallOptions) {
    return this.t.list<Sandbox>("/v1/sandboxes", query, o);
  }

  /** Finds a sandbox by its name in a session, or by its id. */
  get(sandbox: string, o?: SandboxOptions): Promise<Sandbox> {
    return this.t.get(p`/v1/sandboxes/${sandbox}`, o, within(o));
  }

  /** Ends a sandbox and deletes its files. */
  delete(sandbox: string, o?: SandboxOptions): Promise<void> {
    return this.t.delete(p`/v1/sandboxes/${sandbox}`, o, within(o));
  }

  /** Has it sleep at once; the next use wakes it. */
  sleep(sandbox: string, o?: SandboxOptions): Promise<Sandbox> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/sleep`, undefined, o, within(o));
  }

  /** Ends the sandbox's processes and restarts it with its files and its environment's current image, limits and network. */
  restart(sandbox: string, o?: SandboxOptions): Promise<Sandbox> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/restart`, undefined, o, within(o));
  }

  /** Makes copies with files, processes and memory. */
  async fork(sandbox: string, o?: SandboxOptions & { count?: number | undefined }): Promise<Sandbox[]> {
    const made = await this.t.create<{ data: Sandbox[] }>(p`/v1/sandboxes/${sandbox}/fork`, undefined, o, { ...within(o), count: o?.count });
    return made.data;
  }

  /** Keeps it as it is at this moment, for NewSandbox.snapshot. */
  snapshot(sandbox: string, o?: SandboxOptions & { keep_ms?: number | undefined }): Promise<Snapshot> {
    return this.t.create(p`/v1/sandboxes/${sandbox}/snapshots`, undefined, o, { ...within(o), keep_ms: o?.keep_ms });
  }

  /** Narrows what a sandbox may reach of its environment's network. */
  setNetwork(sandbox: string, network: NetworkChange, o?: SandboxOptions): Promise<Sandbox> {
    return this.t.put(p`/v1/sandboxes/${sandbox}/network`, network, o, within(o));
  }

  /** Sets when it is destroyed, from now, and when it sleeps. */
  setTimeout(sandbox: string, timeout: SandboxTimeout, o?: SandboxOptions): Promise<Sandbox> {
    return this.t.put(p`/v1/sandboxes/${sandbox}/timeout`, timeout, o, within(o));
  }

  /** Shows what a sandbox uses. */
  metrics(sandbox: string, o?: SandboxOptions): Promise<SandboxMetrics> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/metrics`, o, within(o));
  }

  /** The ports that its programs listen on. */
  ports(sandbox: string, o?: SandboxOptions) {
    return this.t.list<SandboxPort>(p`/v1/sandboxes/${sandbox}/ports`, within(o), o);
  }

  /** Opens a terminal, or comes back to one. */
  terminal(sandbox: string, o?: TerminalOptions): Promise<Terminal> {
    return openTerminal(this.t, sandbox, () => this.terminalTicket(sandbox, o), o);
  }

  /** Ticket with which a page can open one terminal without a key, within 30 seconds. */
  terminalTicket(sandbox: string, o?: SandboxOptions): Promise<TerminalTicket> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/terminal/ticket`, undefined, o, within(o));
  }
}

/** URLs of ports. */
export class Previews extends Resource {
  /** Lists open ports. */
  list(sandbox: string, o?: SandboxOptions) {
    return this.t.list<Preview>(p`/v1/sandboxes/${sandbox}/previews`, within(o), o);
  }

  /** Opens a port: its URL reaches it without a key. */
  open(sandbox: string, port: number, o?: SandboxOptions): Promise<Preview> {
    return this.t.put(p`/v1/sandboxes/${sandbox}/previews/${port}`, undefined, o, within(o));
  }

  /** Closes a port: its URL stops working for good. */
  close(sandbox: string, port: number, o?: SandboxOptions): Promise<void> {
    return this.t.delete(p`/v1/sandboxes/${sandbox}/previews/${port}`, o, within(o));
  }
}

/** Sandboxes as they were at a moment. */
export class Snapshots extends Resource {
  /** Lists snapshots. */
  list(query?: PageQuery, o?: CallOptions) {
    return this.t.list<Snapshot>("/v1/snapshots", query, o);
  }

  /** Shows a snapshot. */
  get(snapshot: string, o?: CallOptions): Promise<Snapshot> {
    return this.t.get(p`/v1/snapshots/${snapshot}`, o);
  }

  /** Deletes a snapshot. */
  delete(snapshot: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/snapshots/${snapshot}`, o);
  }
}

