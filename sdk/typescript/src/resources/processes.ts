import type { Content } from "../body.js";
import { follow, type StreamOptions } from "../stream.js";
import { p, Resource } from "../transport.js";
import type { NewProcess, ProcessEvent, ProcessSignal, ProcessWritten, SandboxProcess } from "../wire.gen.js";
import { within, type SandboxOptions } from "./sandboxes.js";

/** From where the output of a process is followed. */
export interface FollowOptions extends SandboxOptions, StreamOptions {
  /** The cursor of an earlier event; all that is kept if left out. */
  after?: number | undefined;
  /** false: return the current output without following it. */
  follow?: boolean | undefined;
  /** Of data; utf-8 if left out. */
  encoding?: "utf-8" | "base64" | undefined;
}

/** Programs in a sandbox's background. */
export class Processes extends Resource {
  /** Starts a process in the background. */
  start(sandbox: string, request: NewProcess, o?: SandboxOptions): Promise<SandboxProcess> {
    return this.t.create(p`/v1/sandboxes/${sandbox}/processes`, request, o, within(o));
  }

  /** Lists the processes that were started here. */
  list(sandbox: string, o?: SandboxOptions) {
    return this.t.list<SandboxProcess>(p`/v1/sandboxes/${sandbox}/processes`, within(o), o);
  }

  /** Returns a process by its id. */
  get(sandbox: string, process: string, o?: SandboxOptions): Promise<SandboxProcess> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/processes/${process}`, o, within(o));
  }

  /** Waits for the end of a process, or until timeout_ms are over. */
  wait(sandbox: string, process: string, o?: SandboxOptions & { timeout_ms?: number | undefined }): Promise<SandboxProcess> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/processes/${process}/wait`, o, { ...within(o), timeout_ms: o?.timeout_ms });
  }

  /** The output of a process as it comes, until its end. Aborting ends the stream alone. */
  follow(sandbox: string, process: string, o: FollowOptions = {}): AsyncGenerator<ProcessEvent, void, undefined> {
    const query = { ...within(o), after: o.after, follow: o.follow, encoding: o.encoding };
    return follow<ProcessEvent>(
      this.t,
      {
        open: (last, signal) =>
          this.t.open("GET", p`/v1/sandboxes/${sandbox}/processes/${process}/output`, {
            ...o,
            signal,
            query: { ...query, after: last?.cursor ?? o.after },
            accept: "application/x-ndjson",
          }),
        isLast: (e) => e.type === "exit" || e.type === "stopped",
        ended: async () => o.follow === false,
      },
      o,
    );
  }

  /** Writes to the standard input. */
  write(sandbox: string, process: string, content: Content, o?: SandboxOptions & { close?: boolean | undefined }): Promise<ProcessWritten> {
    return this.t.upload("POST", p`/v1/sandboxes/${sandbox}/processes/${process}/stdin`, content, o, { ...within(o), close: o?.close });
  }

  /** Sends a signal to a process. */
  signal(sandbox: string, process: string, signal: string | ProcessSignal, o?: SandboxOptions): Promise<SandboxProcess> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/processes/${process}/signal`, typeof signal === "string" ? { signal } : signal, o, within(o));
  }

  /** Ends a process and all that it started. */
  delete(sandbox: string, process: string, o?: SandboxOptions): Promise<void> {
    return this.t.delete(p`/v1/sandboxes/${sandbox}/processes/${process}`, o, within(o));
  }

  /** Kills every program in the sandbox, code contexts too. Files stay. */
  killAll(sandbox: string, o?: SandboxOptions): Promise<void> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/processes:killall`, undefined, o, within(o));
  }
}
