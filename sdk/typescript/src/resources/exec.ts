import type { Content } from "../body.js";
import { AtollError, TimeoutError } from "../errors.js";
import type { StreamOptions } from "../stream.js";
import { Resource, type Transport } from "../transport.js";
import type { NewProcess, ProcessEvent, SandboxProcess } from "../wire.gen.js";
import type { Processes } from "./processes.js";
import type { SandboxOptions } from "./sandboxes.js";

/** A command to run: text for a shell, the arguments of a program, or either with more. */
export type Command = string | readonly string[] | (Omit<NewProcess, "stdin" | "terminal"> & { stdin?: Content | undefined });

/** How a command runs. */
export interface ExecOptions extends SandboxOptions, StreamOptions {}

/** How a command ended, and what it has written. */
export interface ExecResult {
  stdout: string;
  stderr: string;
  exit_code: number;
  /** True if the command's timeout_ms ended it. */
  timed_out: boolean;
  /** The signal that ended it, if one did. */
  signal?: string | undefined;
  /** Why the sandbox ended it, if it did. */
  reason?: string | undefined;
}

/** Exec runs commands as processes, and removes them when they have ended or the caller has left. */
export class Exec extends Resource {
  private readonly processes: Processes;
  constructor(t: Transport, processes: Processes) {
    super(t);
    this.processes = processes;
  }

  /** Runs a command, and returns what it has written when it has ended. */
  async exec(sandbox: string, command: Command, o: ExecOptions = {}): Promise<ExecResult> {
    const out = { stdout: [] as string[], stderr: [] as string[] };
    const limit = o.timeout ?? 0;
    const late = limit ? new AbortController() : undefined;
    const timer = late && setTimeout(() => late.abort(new TimeoutError(limit)), limit);
    const signal = late && o.signal ? AbortSignal.any([o.signal, late.signal]) : (late?.signal ?? o.signal);
    try {
      for await (const e of this.stream(sandbox, command, { ...o, signal })) {
        if (e.type === "output") out[e.stream === "stderr" ? "stderr" : "stdout"].push(e.data ?? "");
        else if (e.type !== "keepalive") {
          if (e.type === "stopped") throw new AtollError("stopped", e.reason ?? "the sandbox ended");
          return {
            stdout: out.stdout.join(""),
            stderr: out.stderr.join(""),
            exit_code: e.exit_code ?? -1,
            timed_out: e.timed_out ?? false,
            ...(e.signal ? { signal: e.signal } : {}),
            ...(e.reason ? { reason: e.reason } : {}),
          };
        }
      }
      throw new AtollError("connection", "the command's output ended without its end");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs a command, and yields what it writes as it comes. */
  async *stream(sandbox: string, command: Command, o: ExecOptions = {}): AsyncGenerator<ProcessEvent, void, undefined> {
    const given = typeof command === "string" ? { command } : Array.isArray(command) ? { argv: [...command] } : (command as Exclude<Command, string | readonly string[]>);
    const { stdin, ...rest } = given as Exclude<Command, string | readonly string[]>;
    const request: NewProcess = { ...rest, ...(stdin !== undefined ? { stdin: true } : {}), wait_for_reader: true };
    o.signal?.throwIfAborted();
    // The start is waited for even if the caller leaves, or its process could not be named.
    const { signal, ...calm } = o;
    const starting = this.processes.start(sandbox, request, calm);
    try {
      const { process_id } = await unless(signal, starting);
      const fed = stdin === undefined ? undefined : this.processes.write(sandbox, process_id, stdin, { ...o, close: true }).catch(unread);
      yield* this.processes.follow(sandbox, process_id, o);
      await fed;
    } finally {
      this.t.leave(starting.then((made: SandboxProcess) => this.processes.delete(sandbox, made.process_id, { session: o.session })));
    }
  }
}

/** unread passes over the end of a program that did not read all of its input. */
function unread(e: unknown): void {
  if (!(e instanceof AtollError) || e.code !== "conflict") throw e;
}

/** unless waits for a promise, or throws the signal's reason. */
function unless<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
