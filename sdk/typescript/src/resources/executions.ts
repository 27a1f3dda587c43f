import { AtollError } from "../errors.js";
import type { PageQuery } from "../list.js";
import { follow, type Source, type StreamOptions } from "../stream.js";
import { p, Resource, unique, type CallOptions, type Query, type Transport } from "../transport.js";
import type { AcceptedResponse, Event, ExecuteRequest, ExecuteResponse, Execution, ExecutionSummary } from "../wire.gen.js";

/** How an execution is started. */
export interface ExecuteOptions extends CallOptions {
  /** Names the execution: the same key and request within a day give the same one. A new one if left out. */
  idempotencyKey?: string | undefined;
  /** false: aborting the call leaves the execution running. */
  cancelOnAbort?: boolean | undefined;
  /** Is told the trace id of the execution, once there is an answer. */
  onTraceId?: ((traceId: string) => void) | undefined;
}

/** Which executions are listed. */
export interface ExecutionQuery extends PageQuery {
  metadata?: Record<string, string>;
  status?: string;
  language?: string;
  thread_id?: string;
  key?: string;
  /** RFC 3339. */
  since?: string;
  before?: string;
}

/** tagged makes the query of metadata: metadata.KEY=VALUE. */
export function tagged<Q extends { metadata?: Record<string, string> }>(query: Q | undefined): Query {
  const { metadata, ...rest } = query ?? ({} as Q);
  return { ...(rest as Query), ...Object.fromEntries(Object.entries(metadata ?? {}).map(([k, v]) => ["metadata." + k, v])) };
}

const path = "/v1/sandbox/execute";
const ndjson = "application/x-ndjson";
const maxSeconds = 60; // that a program may run if the request does not say

/** Programs that run in sandboxes of their own. */
export class Executions extends Resource {
  /**
   * Runs a program and returns its result. A failed program also returns a result.
   * If the program times out, it throws a ProgramTimeoutError. Aborting the call cancels the execution.
   */
  async run(request: ExecuteRequest, o: ExecuteOptions = {}): Promise<ExecuteResponse> {
    const key = o.idempotencyKey ?? unique();
    // The program's time, and as long again for its sandbox.
    const timeout = o.timeout ?? this.t.options.timeout ?? Math.max(300, 2 * (request.timeout ?? maxSeconds)) * 1000;
    const seen = o.onTraceId && ((res: Response) => o.onTraceId!(res.headers.get("x-trace-id") ?? ""));
    try {
      return await this.t.call("POST", path, { ...o, ...keyed(key, o), timeout, seen, json: request, repeatable: true });
    } catch (e) {
      const timedOut = e instanceof AtollError && e.code === "timeout";
      if ((o.signal?.aborted || timedOut) && o.cancelOnAbort !== false) this.t.leave(this.cancelKeyed(request, key, o));
      throw e;
    }
  }

  /** Starts a program, and returns immediately; the server notifies a webhook when it ends. */
  async start(request: ExecuteRequest, o: ExecuteOptions = {}): Promise<AcceptedResponse> {
    const { headers } = keyed(o.idempotencyKey ?? unique(), o);
    return this.t.call("POST", path, { ...o, headers: { ...headers, Prefer: "respond-async" }, json: request, repeatable: true });
  }

  /** Runs a program and streams its output. Aborting cancels it; leaving the loop does not. */
  stream(request: ExecuteRequest, o: StreamOptions & ExecuteOptions = {}): ExecutionStream {
    const key = o.idempotencyKey ?? unique();
    return new ExecutionStream(this.t, o, "", 0, (signal) =>
      this.t.open("POST", path, { ...o, ...keyed(key, o), signal, json: request, accept: ndjson, repeatable: true }),
    );
  }

  /** The events of an execution after a seq, until its end. Aborting ends the stream alone. */
  follow(traceId: string, o: StreamOptions & { after?: number } = {}): ExecutionStream {
    return new ExecutionStream(this.t, { ...o, cancelOnAbort: false }, traceId, o.after ?? 0);
  }

  /** Returns the record of an execution, with its output. */
  get(traceId: string, o?: CallOptions): Promise<Execution> {
    return this.t.get(p`/v1/executions/${traceId}`, o);
  }

  /** Lists executions, the newest first. All filters must match. */
  list(query?: ExecutionQuery, o?: CallOptions) {
    return this.t.list<ExecutionSummary>("/v1/executions", tagged(query), o);
  }

  /** Ends a program that runs. */
  cancel(traceId: string, o?: CallOptions): Promise<Execution> {
    return this.t.post(p`/v1/executions/${traceId}/cancel`, undefined, o);
  }

  /** Deletes an execution that has ended, with its output and files. */
  delete(traceId: string, o?: CallOptions): Promise<void> {
    return this.t.delete(p`/v1/executions/${traceId}`, o);
  }

  /** The bytes of a whole stream of an execution that has ended. */
  output(traceId: string, stream: "stdout" | "stderr", o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/executions/${traceId}/output`, o, { stream });
  }

  /** The bytes of a file that an execution gave back. */
  file(traceId: string, path: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/executions/${traceId}/file`, o, { path });
  }

  /** Waits for the end of an execution. */
  async wait(traceId: string, o: StreamOptions = {}): Promise<Execution> {
    for await (const _ of this.follow(traceId, o));
    return this.get(traceId, o);
  }

  /** cancelKeyed cancels the execution of a key, whose answer has not been seen. */
  private async cancelKeyed(request: ExecuteRequest, key: string, o: ExecuteOptions): Promise<void> {
    const again = { json: request, ...keyed(key, o), repeatable: true, timeout: 30_000 };
    // The headers of a stream name the execution; they come at once.
    const res = await this.t.open("POST", path, { ...again, accept: ndjson }).catch(async (e: unknown) => {
      if (!(e instanceof AtollError) || e.code !== "rate_limited") throw e;
      return this.t.open("POST", path, { ...again, headers: { ...again.headers, Prefer: "respond-async" } });
    });
    await res.body?.cancel();
    const traceId = res.headers.get("x-trace-id");
    if (traceId) await this.cancel(traceId);
  }
}

const keyed = (key: string, o: CallOptions) => ({ headers: { ...o.headers, "Idempotency-Key": key } });

/** The events of an execution: iterate it, or await result(). */
export class ExecutionStream implements AsyncIterable<Event> {
  /** Names the execution, once the stream has begun. */
  traceId: string;
  private readonly t: Transport;
  private readonly o: StreamOptions & ExecuteOptions;
  private readonly after: number;
  private readonly begin: ((signal: AbortSignal) => Promise<Response>) | undefined;

  constructor(t: Transport, o: StreamOptions & ExecuteOptions, traceId: string, after: number, begin?: (signal: AbortSignal) => Promise<Response>) {
    this.t = t;
    this.o = o;
    this.traceId = traceId;
    this.after = after;
    this.begin = begin;
  }

  /** Yields the events as they come. */
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    const source: Source<Event> = {
      open: async (last, signal) => {
        let res: Response;
        if (!this.traceId) {
          res = await this.begin!(signal);
          this.traceId = res.headers.get("x-trace-id") ?? "";
        } else {
          const query = { after: last?.seq ?? this.after };
          res = await this.t.open("GET", p`/v1/executions/${this.traceId}/output`, { ...this.o, signal, query, accept: ndjson });
        }
        return res.status === 204 ? null : res;
      },
      isLast: (e) => e.type === "result",
    };
    if (this.o.cancelOnAbort !== false) {
      source.cancel = async () => {
        if (!this.traceId) this.traceId = (await this.begin!(AbortSignal.timeout(30_000))).headers.get("x-trace-id") ?? "";
        await this.cancel();
      };
    }
    return follow(this.t, source, this.o);
  }

  /** Ends the program. */
  cancel(): Promise<Execution> {
    return this.t.post(p`/v1/executions/${this.traceId}/cancel`);
  }

  /** Reads to the end and returns the result. */
  async result(): Promise<ExecuteResponse> {
    for await (const e of this) if (e.type === "result" && e.result) return e.result;
    throw new AtollError("connection", "the execution had ended, and all its events were read before");
  }
}
