import { AtollError, StreamError } from "./errors.js";
import { backoff, pause, type CallOptions, type Transport } from "./transport.js";

/** How a stream goes on when its connection breaks. */
export interface StreamOptions extends CallOptions {
  /** false: a stream that breaks off fails with StreamError instead of going on at its next event. */
  reconnect?: boolean | undefined;
  /** Milliseconds without a byte after which a stream counts as broken; 60000 if left out, 0 for never. */
  idleTimeout?: number | undefined;
}

/** How a kind of stream is opened, gone on with, and known to be whole. */
export interface Source<E> {
  /** open asks for the events after the last one that there was. It returns null when there are no more. */
  open(last: E | undefined, signal: AbortSignal): Promise<Response | null>;
  /** isLast says whether the event is the last one. */
  isLast(e: E): boolean;
  /** ended is asked at an end without a last event: whether that is the end. */
  ended?(last: E | undefined): Promise<boolean>;
  /** keeps says whether the stream can be gone on with after the event. */
  keeps?(e: E): boolean;
  /** lost is told when events may have been missed, and may return one that says so. */
  lost?(): E;
  /** begun says whether the streamed operation has started; otherwise the stream cannot resume. */
  begun?(): boolean;
  /** cancel stops the streamed operation on the server. */
  cancel?(): Promise<unknown>;
  /** resumes is false for a stream that cannot be taken up again. */
  resumes?: boolean;
}

/** The most times in a row that a stream is taken up again without an event. */
const maxReopens = 6;

/** follow yields the events of a source to its end. Aborting the signal cancels on the server. */
export function follow<E extends object>(t: Transport, source: Source<E>, o: StreamOptions = {}): AsyncGenerator<E, void, undefined> {
  return oneByOne(parts(t, source, o), o.signal);
}

/** parts yields the events of a source as they come together. */
async function* parts<E extends object>(t: Transport, source: Source<E>, o: StreamOptions): AsyncGenerator<E[], void, undefined> {
  const stop = new AbortController();
  const abort = () => stop.abort(o.signal!.reason);
  o.signal?.throwIfAborted();
  o.signal?.addEventListener("abort", abort, { once: true });
  let last: E | undefined;
  let failed = 0;
  try {
    for (;;) {
      let cut: unknown;
      try {
        const res = await source.open(last, stop.signal);
        if (!res) return;
        for await (const part of events<E>(res, o.idleTimeout ?? 60_000)) {
          if (stop.signal.aborted) throw stop.signal.reason;
          failed = 0;
          const end = part.findIndex((e) => {
            if (source.keeps?.(e) ?? true) last = e;
            return source.isLast(e);
          });
          yield end < 0 ? part : part.slice(0, end + 1);
          if (end >= 0) return;
        }
      } catch (e) {
        if (stop.signal.aborted) throw stop.signal.reason;
        if (e instanceof AtollError && e.code !== "connection") throw e;
        cut = e;
      }
      if (cut === undefined && (await source.ended?.(last))) return;
      if (o.reconnect === false || source.resumes === false || source.begun?.() === false || ++failed > maxReopens) {
        throw new StreamError("the stream ended before its last event", { cause: cut });
      }
      await pause(backoff(failed - 1), stop.signal);
      const lost = source.lost?.();
      if (lost) yield [lost];
    }
  } finally {
    o.signal?.removeEventListener("abort", abort);
    if (o.signal?.aborted && source.cancel) t.leave(source.cancel());
    stop.abort(new StreamError("the stream was closed")); // which closes the connection
  }
}

/** oneByOne yields what is in parts. It is no async function, of which each event would wait for several turns of the queue. */
function oneByOne<E>(from: AsyncGenerator<E[], void, undefined>, signal: AbortSignal | undefined): AsyncGenerator<E, void, undefined> {
  let part: E[] = [];
  let at = 0;
  let taking: Promise<unknown> | undefined; // the last of the calls that wait for a part
  const take = async (): Promise<IteratorResult<E, void>> => {
    while (at >= part.length) {
      const next = await from.next();
      if (next.done) return next;
      [part, at] = [next.value, 0];
    }
    if (!signal?.aborted) return { done: false, value: part[at++]! };
    part = [];
    await from.throw(signal.reason);
    return { done: true, value: undefined };
  };
  const all = {
    next() {
      if (!taking && at < part.length && !signal?.aborted) return Promise.resolve<IteratorResult<E, void>>({ done: false, value: part[at++]! });
      const mine = taking ? taking.then(take, take) : take();
      const over = () => {
        if (taking === mine) taking = undefined;
      };
      taking = mine;
      mine.then(over, over);
      return mine;
    },
    async return() {
      part = [];
      return from.return();
    },
    async throw(e: unknown) {
      part = [];
      await from.throw(e);
      return { done: true as const, value: undefined };
    },
    [Symbol.asyncIterator]: () => all as AsyncGenerator<E, void, undefined>,
    ...(Symbol.asyncDispose && { [Symbol.asyncDispose]: async () => void (await all.return()) }),
  };
  return all as unknown as AsyncGenerator<E, void, undefined>;
}

/** events parses NDJSON or server-sent events whose data is JSON, in the batches in which they arrive. */
async function* events<E>(res: Response, idle: number): AsyncGenerator<E[], void, undefined> {
  const sse = res.headers.get("content-type")?.startsWith("text/event-stream");
  let data = "";
  for await (const text of lines(res, idle)) {
    const part: E[] = [];
    let wrong: { error: unknown } | undefined;
    try {
      for (let begin = 0, end = text.indexOf("\n"); end >= 0; begin = end + 1, end = text.indexOf("\n", begin)) {
        const line = text.slice(begin, text[end - 1] === "\r" ? end - 1 : end);
        if (!sse) {
          if (line) part.push(JSON.parse(line) as E);
        } else if (line.startsWith("data:")) {
          data += (data && "\n") + line.slice(line[5] === " " ? 6 : 5);
        } else if (line === "" && data) {
          const whole = data;
          data = "";
          if (whole !== "[DONE]") part.push(JSON.parse(whole) as E);
        }
      }
    } catch (error) {
      wrong = { error };
    }
    if (part.length) yield part;
    if (wrong) throw wrong.error;
  }
}

/** lines yields texts of whole lines, and drops an incomplete last line. */
async function* lines(res: Response, idle: number): AsyncGenerator<string, void, undefined> {
  if (!res.body) return;
  const from = res.body.getReader();
  const decoder = new TextDecoder();
  let rest: string[] = []; // of a line that has not ended
  try {
    for (;;) {
      const { done, value } = await timely(from.read(), idle);
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      const end = text.lastIndexOf("\n") + 1;
      if (end) {
        yield rest.join("") + text.slice(0, end);
        rest = [];
      }
      if (end < text.length) rest.push(text.slice(end));
    }
  } finally {
    from.cancel().catch(() => undefined); // it was cut or is over
  }
}

/** timely waits for a read, but not longer than ms. */
function timely<T>(read: Promise<T>, ms: number): Promise<T> {
  if (!ms) return read;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new StreamError(`nothing came for ${ms} ms`)), ms);
    read.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
