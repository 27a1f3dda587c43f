import { follow, type Source, type StreamOptions } from "../stream.js";
import { p, Resource, type CallOptions } from "../transport.js";
import type { CancelledResponse, CreateResponse, DeletedResponse, Response as ModelResponse, ResponseEvent, ResponseFiles, ResponseInput } from "../wire.gen.js";

const sse = "text/event-stream";
const last = new Set(["response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"]);

/** Answers of models that may use tools. */
export class Responses extends Resource {
  /** Asks a model. Aborting the call cancels the response, unless it is made in the background. */
  create(request: CreateResponse, o?: CallOptions): Promise<ModelResponse> {
    return this.t.perform("/v1/responses", request, o);
  }

  /** Asks a model and streams the answer. Aborting cancels the response. */
  stream(request: CreateResponse, o: StreamOptions = {}): AsyncGenerator<ResponseEvent, void, undefined> {
    let id = "";
    return this.events(
      (signal) => this.t.open("POST", "/v1/responses", { ...o, signal, json: { ...request, stream: true }, accept: sse }),
      () => id,
      (e) => (id ||= e.response?.id ?? ""),
      o,
      async () => id && this.cancel(id),
    );
  }

  /** The events of a streamed or background response. Aborting ends the stream alone. */
  follow(id: string, o: StreamOptions & { starting_after?: number | undefined } = {}): AsyncGenerator<ResponseEvent, void, undefined> {
    return this.events(undefined, () => id, undefined, o, undefined, o.starting_after);
  }

  private events(
    begin: ((signal: AbortSignal) => Promise<Response>) | undefined,
    id: () => string,
    see: ((e: ResponseEvent) => void) | undefined,
    o: StreamOptions,
    cancel: (() => Promise<unknown>) | undefined,
    after?: number,
  ): AsyncGenerator<ResponseEvent, void, undefined> {
    const source: Source<ResponseEvent> = {
      open: (e, signal) => {
        if (begin && !id()) return begin(signal);
        const query = { stream: true, starting_after: e?.sequence_number ?? after };
        return this.t.open("GET", p`/v1/responses/${id()}`, { ...o, signal, query, accept: sse });
      },
      isLast: (e) => last.has(e.type),
      keeps: (e) => (see?.(e), true),
    };
    if (cancel) source.cancel = cancel;
    if (begin) source.begun = () => id() !== "";
    return follow(this.t, source, o);
  }

  /** Shows a response as it is now. */
  get(id: string, query?: { include?: string }, o?: CallOptions): Promise<ModelResponse> {
    return this.t.get(p`/v1/responses/${id}`, o, query);
  }

  /** Ends a response that is under way. */
  cancel(id: string, o?: CallOptions): Promise<CancelledResponse> {
    return this.t.post(p`/v1/responses/${id}/cancel`, undefined, o);
  }

  /** Deletes a response that has ended. */
  delete(id: string, o?: CallOptions): Promise<DeletedResponse> {
    return this.t.delete(p`/v1/responses/${id}`, o);
  }

  /** Input of the response, with the earlier conversation. */
  inputs(id: string, query?: { limit?: number; order?: "asc" | "desc"; after?: string; include?: string }, o?: CallOptions) {
    return this.t.after<ResponseInput["data"][number]>(p`/v1/responses/${id}/input_items`, query, o);
  }

  /** Files that the response's code gave back. */
  files(id: string, o?: CallOptions) {
    return this.t.after<ResponseFiles["data"][number]>(p`/v1/responses/${id}/files`, undefined, o);
  }

  /** Returns the bytes of a file that a response's model has shared. */
  file(id: string, file: string, o?: CallOptions): Promise<Response> {
    return this.t.download(p`/v1/responses/${id}/files/${file}/content`, o);
  }
}
