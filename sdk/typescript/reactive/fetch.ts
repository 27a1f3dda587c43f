import { AtollError, type SandboxFilesystem, type SandboxOptions } from "../src/index.js";
import { isReadable, snapshot, type Opaque } from "./cells.js";
import { current, ready } from "./client.js";
import { task, type Task } from "./task.js";

/** What fetchData asks for. */
export interface FetchParams {
  url: Opaque<string>;
  /** json if left out. */
  mode?: Opaque<"json" | "text"> | undefined;
  options?: Opaque<{ method?: string; headers?: Record<string, string>; body?: unknown }> | undefined;
  result?: unknown;
}

interface Fetch {
  url: string;
  mode?: "json" | "text";
  options?: { method?: string; headers?: Record<string, string>; body?: unknown };
}

/** fetchData asks for a URL whenever it changes; an empty one asks for nothing. */
export function fetchData<T = any>(params: Opaque<FetchParams> | FetchParams): Task<T> {
  return task<Fetch, T>({
    name: "fetchData",
    inputs: () => {
      const { result: _, ...rest } = (isReadable(params) ? params.get() : params) as FetchParams;
      const read = snapshot(rest) as Fetch;
      return read.url ? read : undefined;
    },
    run: async ({ url, mode, options = {} }, signal) => {
      const { body, ...init } = options;
      const sent = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
      const res = await fetch(url, { ...init, ...sent, signal });
      if (!res.ok) throw new AtollError("http_" + res.status, `${url} answered ${res.status} ${res.statusText}`.trim());
      return (mode === "text" ? res.text() : res.json()) as Promise<T>;
    },
  });
}

/** ofFile is a task on a file of a named sandbox. */
function ofFile<I extends object, T>(name: string, params: { [K in keyof I]: Opaque<I[K]> }, run: (files: SandboxFilesystem, inputs: I, at: SandboxOptions) => Promise<T>): Task<T> {
  return task<I, T>({
    name,
    ready,
    inputs: () => snapshot(params) as I,
    run: (inputs, signal) => {
      const { client, session } = current();
      return run(client.sandboxes.files, inputs, { session, signal });
    },
  });
}

/** readSandboxFile reads a file of a named sandbox. */
export const readSandboxFile = <T = string>(params: { sandbox: Opaque<string>; path: Opaque<string>; mode?: Opaque<"text" | "json"> | undefined }): Task<T> =>
  ofFile<{ sandbox: string; path: string; mode?: "text" | "json" | undefined }, T>("readSandboxFile", params as never, async (files, { sandbox, path, mode }, at) => {
    const res = await files.read(sandbox, path, at);
    return (mode === "json" ? res.json() : res.text()) as Promise<T>;
  });

/** writeSandboxFile writes a file of a named sandbox. */
export const writeSandboxFile = (params: { sandbox: Opaque<string>; path: Opaque<string>; content: Opaque<string> }): Task<{ ok: true }> =>
  ofFile<{ sandbox: string; path: string; content: string }, { ok: true }>("writeSandboxFile", params, async (files, { sandbox, path, content }, at) => {
    await files.write(sandbox, path, content, at);
    return { ok: true };
  });
