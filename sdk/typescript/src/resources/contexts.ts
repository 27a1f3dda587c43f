import { follow, type StreamOptions } from "../stream.js";
import { p, Resource } from "../transport.js";
import type { CodeContext, CodeEvent, CodeResult, NewContext, RunCode } from "../wire.gen.js";
import { within, type SandboxOptions } from "./sandboxes.js";

/** Interpreters that stay in a sandbox. python, node and bash name those that their first run makes. */
export class Contexts extends Resource {
  /** Starts another context. */
  create(sandbox: string, request: NewContext, o?: SandboxOptions): Promise<CodeContext> {
    return this.t.create(p`/v1/sandboxes/${sandbox}/contexts`, request, o, within(o));
  }

  /** Lists the contexts. */
  list(sandbox: string, o?: SandboxOptions) {
    return this.t.list<CodeContext>(p`/v1/sandboxes/${sandbox}/contexts`, within(o), o);
  }

  /** Shows a context. */
  get(sandbox: string, context: string, o?: SandboxOptions): Promise<CodeContext> {
    return this.t.get(p`/v1/sandboxes/${sandbox}/contexts/${context}`, o, within(o));
  }

  /** Runs code. Code that fails is a result, too. Aborting the call interrupts it. */
  run(sandbox: string, context: string, request: string | RunCode, o?: SandboxOptions): Promise<CodeResult> {
    return this.t.perform(p`/v1/sandboxes/${sandbox}/contexts/${context}/run`, code(request), o, within(o));
  }

  /** Runs code and streams its output and values. Aborting or leaving interrupts it. */
  stream(sandbox: string, context: string, request: string | RunCode, o?: SandboxOptions & StreamOptions): AsyncGenerator<CodeEvent, void, undefined> {
    const path = p`/v1/sandboxes/${sandbox}/contexts/${context}/run`;
    return follow<CodeEvent>(
      this.t,
      {
        open: (_, signal) => this.t.open("POST", path, { ...o, signal, query: within(o), json: code(request), accept: "application/x-ndjson" }),
        isLast: (e) => e.type === "result",
        resumes: false, // the server interrupts what has no reader
      },
      o,
    );
  }

  /** Interrupts what a context runs, as Ctrl-C does. */
  interrupt(sandbox: string, context: string, o?: SandboxOptions): Promise<void> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/contexts/${context}/interrupt`, undefined, o, within(o));
  }

  /** Starts a context anew, with nothing defined. */
  restart(sandbox: string, context: string, o?: SandboxOptions): Promise<CodeContext> {
    return this.t.post(p`/v1/sandboxes/${sandbox}/contexts/${context}/restart`, undefined, o, within(o));
  }

  /** Ends a context. */
  delete(sandbox: string, context: string, o?: SandboxOptions): Promise<void> {
    return this.t.delete(p`/v1/sandboxes/${sandbox}/contexts/${context}`, o, within(o));
  }
}

const code = (request: string | RunCode): RunCode => (typeof request === "string" ? { code: request } : request);
