import { Executions, type ExecuteOptions } from "./resources/executions.js";
import { Transport, type ClientOptions } from "./transport.js";
import type { ExecuteRequest, ExecuteResponse } from "./wire.gen.js";

/**
 * Atoll calls one server with one key.
 *
 *     const client = new Atoll({ baseUrl: "http://127.0.0.1:8080", apiKey: "sk-atoll-…" });
 *     const { stdout } = await client.execute("print(6 * 7)");
 */
export class Atoll {
  readonly executions: Executions;
  private readonly transport: Transport;

  constructor(options: ClientOptions = {}) {
    const t = (this.transport = new Transport(options));
    this.executions = new Executions(t);
  }

  /** Runs a program, Python unless the request says otherwise, and returns its result. */
  execute(request: string | ExecuteRequest, options?: ExecuteOptions): Promise<ExecuteResponse> {
    return this.executions.create(typeof request === "string" ? { code: request } : request, options);
  }

  /** Waits for what goes on after calls that were aborted: their cancelling on the server. */
  close(): Promise<void> {
    return this.transport.settled();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
