import { AtollError, ConnectionError, TimeoutError, refused, retryAfter } from "./errors.js";
import { List } from "./list.js";
import { encode, type Content } from "./body.js";

/** Options of a call. */
export interface CallOptions {
  /** Ends the call, and cancels its work on the server. */
  signal?: AbortSignal | undefined;
  /** Milliseconds until the call fails with TimeoutError; 0 for none. Of a stream or download: until it begins. */
  timeout?: number | undefined;
  /** How often the call is tried again where that is safe; the client's if left out. */
  maxRetries?: number | undefined;
  /** More headers. */
  headers?: Record<string, string> | undefined;
  /**
   * Of a call that makes or runs something: it is done once, however often it is sent with the same key within a day. A
   * call that makes something has a new one if left out. With one, runs of contexts, tools and responses go on when aborted.
   */
  idempotencyKey?: string | undefined;
}

/** Settings of a client. */
export interface ClientOptions {
  /** Such as http://127.0.0.1:8080; ATOLL_BASE_URL if left out. */
  baseUrl?: string | undefined;
  /** A key or token, or what returns one for each request; ATOLL_API_KEY if left out. */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Milliseconds for a call that does not say; 300000 if left out. */
  timeout?: number | undefined;
  /** 2 if left out. */
  maxRetries?: number | undefined;
  /** Sent with every request. */
  headers?: Record<string, string> | undefined;
  /** In place of the platform's. */
  fetch?: typeof fetch | undefined;
  /** In place of the platform's, which Node has from 22 on. For terminals. */
  WebSocket?: typeof WebSocket | undefined;
}

/** The part of a URL after the question mark. */
export type Query = object;

/** A request before it is sent. */
export interface Request extends CallOptions {
  query?: Query | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  content?: Content | undefined;
  type?: string | undefined;
  accept?: string | undefined;
  /** Whether the request may be made twice, as GET, PUT and DELETE may. */
  repeatable?: boolean | undefined;
  /** Sent as its Idempotency-Key, which makes it repeatable. */
  key?: string | undefined;
  /** Is given the answer before its body is read. */
  seen?: ((res: Response) => void) | undefined;
}

/** hex writes bytes as text. */
export const hex = (bytes: Uint8Array) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** unique returns a word that no other call has; randomUUID is not there on pages without TLS. */
export const unique = () => hex(crypto.getRandomValues(new Uint8Array(16)));

/** p escapes what it is given: p`/v1/agents/${id}`. */
export function p(parts: TemplateStringsArray, ...names: readonly (string | number)[]): string {
  return parts.reduce((path, part, i) => {
    const name = String(names[i - 1]);
    if (name === "" || name === "." || name === "..") throw new AtollError("validation_error", `${JSON.stringify(name)} is no name`);
    return path + encodeURIComponent(name) + part;
  });
}

/** hasResult reports whether an error carries the result of a program that timed out. */
const hasResult = (body: unknown) => typeof body === "object" && body !== null && "exit_code" in body;

/** The longest that Retry-After makes a call wait, in milliseconds. */
const maxWait = 60_000;

/** backoff returns how long to wait before try n, which counts from 0, with jitter. */
export const backoff = (n: number) => Math.min(8000, 250 * 2 ** n) * (0.5 + Math.random() / 2);

/** pause waits, or throws the signal's reason. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => (clearTimeout(timer), reject(signal!.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

const environment = (name: string): string | undefined =>
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];

/** Transport makes requests of one server with one key. */
export class Transport {
  readonly base: string;
  readonly options: ClientOptions;
  private readonly fetch: typeof fetch;
  private readonly leaving = new Set<Promise<unknown>>();

  constructor(options: ClientOptions = {}) {
    this.options = options;
    this.base = (options.baseUrl ?? environment("ATOLL_BASE_URL") ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    const given = options.fetch ?? globalThis.fetch;
    this.fetch = (input, init) => given(input, init); // browsers want no other this
  }

  /** Returns the URL of a path, with a query. */
  url(path: string, query?: Query): string {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) q.append(name, String(value));
    }
    const text = q.toString();
    return this.base + path + (text && "?" + text);
  }

  /** open makes a request and returns its answer, whose body is not read, if that is a success. */
  async open(method: string, path: string, r: Request = {}): Promise<Response> {
    const { signal } = r;
    signal?.throwIfAborted();
    const limit = r.timeout ?? this.options.timeout ?? 300_000;
    const stop = new AbortController();
    const abort = () => stop.abort(signal!.reason);
    signal?.addEventListener("abort", abort, { once: true });
    const timer = limit ? setTimeout(() => stop.abort(new TimeoutError(limit)), limit) : undefined;
    try {
      return await this.attempts(method, this.url(path, r.query), r, stop.signal);
    } catch (e) {
      signal?.removeEventListener("abort", abort);
      throw e;
    } finally {
      clearTimeout(timer); // the signal goes on to end the body
    }
  }

  private async attempts(method: string, url: string, r: Request, signal: AbortSignal): Promise<Response> {
    const body = encode(r);
    const repeatable = r.repeatable ?? (!!r.key || (method !== "POST" && method !== "PATCH"));
    const retries = body.once ? 0 : (r.maxRetries ?? this.options.maxRetries ?? 2);
    let headers: Record<string, string> | undefined;
    // Deno sends a request again by itself when a connection that it kept breaks, also a POST; but not a stream.
    const sentOnce = "Deno" in globalThis && (method === "POST" || method === "PATCH") && body.value !== undefined;
    for (let tried = 0; ; tried++) {
      let wait: number;
      try {
        // The server knows a key by who sent it: all attempts are made with one token.
        if (!headers || !r.key) headers = await this.headers(r, body.type);
        const res = await this.fetch(url, {
          method,
          headers,
          redirect: "manual", // another host must not see the key
          signal,
          ...(body.value === undefined ? {} : { body: sentOnce && !body.once ? new Blob([body.value as BlobPart]).stream() : body.value }),
          ...(body.once || sentOnce ? { duplex: "half" } : {}),
        } as RequestInit);
        if (res.ok) return res;
        const after = retryAfter(res.headers);
        wait = after ?? backoff(tried);
        if (method === "DELETE" && tried > 0 && res.status === 404) return new Response(null, { status: 204 }); // by the try before
        // 429 and 503 say that nothing was begun; of 502 and 504 a part may have been done.
        // 409 that says when to come back: an earlier attempt is still being served.
        const refusal = (res.status === 429 || res.status === 503 || (res.status === 409 && repeatable)) && after !== undefined;
        const error = await refused(res);
        const again = refusal || (repeatable && [502, 503, 504].includes(res.status) && !hasResult(error.body));
        if (!again || tried >= retries || wait > maxWait) throw error;
      } catch (e) {
        if (signal.aborted) throw signal.reason;
        if (e instanceof AtollError) throw e;
        if (!repeatable || tried >= retries) {
          const cause = (e as Error).cause as { message?: string; code?: string } | undefined;
          throw new ConnectionError(`no answer from ${this.base}: ${cause?.message || cause?.code || (e as Error).message}`, { cause: e });
        }
        wait = backoff(tried);
      }
      await pause(wait, signal);
    }
  }

  private async headers(r: Request, type: string | undefined): Promise<Record<string, string>> {
    let key = this.options.apiKey ?? environment("ATOLL_API_KEY");
    if (typeof key === "function") key = await key();
    return {
      accept: r.accept ?? "application/json",
      ...(type ? { "content-type": type } : {}),
      ...(key ? { authorization: "Bearer " + key } : {}),
      ...(r.key ? { "idempotency-key": r.key } : {}),
      ...this.options.headers,
      ...r.headers,
    };
  }

  /** call makes a request whose answer is one JSON value. */
  async call<T>(method: string, path: string, r: Request = {}): Promise<T> {
    // One time-out for the answer and its body.
    const limit = r.timeout ?? this.options.timeout ?? 300_000;
    const late = new TimeoutError(limit);
    const stop = new AbortController();
    const abort = () => stop.abort(r.signal!.reason);
    r.signal?.throwIfAborted();
    r.signal?.addEventListener("abort", abort, { once: true });
    const timer = limit ? setTimeout(() => stop.abort(late), limit) : undefined;
    try {
      const res = await this.open(method, path, { ...r, signal: stop.signal, timeout: 0 });
      r.seen?.(res);
      if (res.status === 204) return undefined as T;
      return (await res.json()) as T;
    } catch (e) {
      if (stop.signal.aborted) throw stop.signal.reason;
      if (e instanceof AtollError) throw e;
      throw new ConnectionError("the answer broke off: " + (e as Error).message, { cause: e });
    } finally {
      clearTimeout(timer);
      r.signal?.removeEventListener("abort", abort);
    }
  }

  get = <T>(path: string, o?: CallOptions, query?: Query) => this.call<T>("GET", path, { ...o, query });
  delete = <T = void>(path: string, o?: CallOptions, query?: Query) => this.call<T>("DELETE", path, { ...o, query });
  post = <T>(path: string, json?: unknown, o?: CallOptions, query?: Query) => this.call<T>("POST", path, { ...o, json, query });
  /** create makes something, once. */
  create = <T>(path: string, json?: unknown, o?: CallOptions, query?: Query) =>
    this.call<T>("POST", path, { ...o, json, query, key: o?.idempotencyKey ?? unique() });
  /** perform runs something, which ends with its caller unless that gave a key. */
  perform = <T>(path: string, json?: unknown, o?: CallOptions, query?: Query) =>
    this.call<T>("POST", path, { ...o, json, query, key: o?.idempotencyKey });
  patch = <T>(path: string, json: unknown, o?: CallOptions) => this.call<T>("PATCH", path, { ...o, json });
  put = <T>(path: string, json?: unknown, o?: CallOptions, query?: Query) => this.call<T>("PUT", path, { ...o, json, query });
  list = <T>(path: string, query?: Query, o?: CallOptions) => new List<T>((page) => this.get(path, o, page ? { ...query, page } : query));
  /** after lists what is paged by the id of the last item. */
  after = <T>(path: string, query?: Query, o?: CallOptions) =>
    new List<T>(async (after) => {
      const part = await this.get<{ data: T[]; has_more?: boolean; last_id?: string | null }>(path, o, after ? { ...query, after } : query);
      return { ...part, next_page: (part.has_more && part.last_id) || null };
    });
  /** upload sends bytes, for as long as that takes. */
  upload = <T>(method: string, path: string, content: Content, o?: CallOptions & { type?: string }, query?: Query) =>
    this.call<T>(method, path, { timeout: 0, ...o, content, query });
  /** download returns an answer whose body is bytes, for the caller to read as it likes. */
  download = (path: string, o?: CallOptions, query?: Query) => this.open("GET", path, { ...o, query, accept: "*/*" });

  /** leave does what a caller that has left does not wait for, such as cancelling. */
  leave(work: Promise<unknown>): void {
    const quiet = work.catch(() => undefined).finally(() => this.leaving.delete(quiet));
    this.leaving.add(quiet);
  }

  /** settled waits for all that leave was given. */
  async settled(): Promise<void> {
    while (this.leaving.size) await Promise.all(this.leaving);
  }
}

/** Resource is a part of the client: its methods call one part of the interface. */
export class Resource {
  protected readonly t: Transport;
  constructor(t: Transport) {
    this.t = t;
  }
}
