import { AtollError, type Atoll, type wire } from "../src/index.js";
import { hex } from "../src/transport.js";
import { isReadable, snapshot, type Opaque } from "./cells.js";
import { current, ready } from "./client.js";
import { runIn } from "./image.js";
import { task, type Task } from "./task.js";

/** What a command came to. */
export interface ExecResult {
  stdout: string;
  stderr: string;
  exit_code: number;
  /** What was asked for, by its path: text, or of json what it says. Files that are not there are left out. */
  files?: Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any
}

/** Files to read back: paths; or by path "text" or "json" to read, and texts to write before. */
export type Files = Opaque<string[]> | Record<string, Opaque<string> | "text" | "json">;

/** What exec runs. */
export interface ExecParams {
  /** One command, or several, which run in order until one fails. */
  command: Opaque<string | string[]>;
  /** The image of the sandbox; that of the key's environment if left out. */
  image?: Opaque<string> | undefined;
  files?: Files | undefined;
  /** Milliseconds that all commands may take together. */
  timeout_ms?: Opaque<number> | undefined;
  /** Any value: another one runs the same commands again. Otherwise equal inputs have one result for a day. */
  refresh?: unknown;
  /** Says what type the result has; it is not used. */
  result?: unknown;
}

/** What a run depends on. */
export interface ExecInputs {
  command: string[];
  image?: string;
  write: Record<string, string>;
  read: Record<string, "text" | "json">;
  timeout_ms?: number;
  refresh?: unknown;
}

/** exec runs commands in a sandbox of their own, whenever what they depend on changes. */
export function exec(params: Opaque<ExecParams> | ExecParams): Task<ExecResult> {
  return task<ExecInputs, ExecResult>({ name: "exec", ready, inputs: () => inputsOf(params), run: (inputs, signal) => run(current().client, inputs, signal) });
}

function inputsOf(given: Opaque<ExecParams> | ExecParams): ExecInputs {
  const params = (isReadable(given) ? given.get() : given) as ExecParams;
  const { files, result: _, ...rest } = params;
  const read = snapshot(rest) as { command: string | string[]; image?: string; timeout_ms?: number; refresh?: unknown };
  return { ...read, command: [read.command].flat(), ...filesOf(files) };
}

/** filesOf tells what is written before from what is read after. A cell is always written. */
function filesOf(given: Files | undefined): Pick<ExecInputs, "write" | "read"> {
  const files = isReadable(given) ? given.get() : given;
  const write: Record<string, string> = {};
  const read: Record<string, "text" | "json"> = {};
  if (Array.isArray(files)) for (const path of snapshot(files) as string[]) read[path] = "text";
  else {
    for (const [path, content] of Object.entries((files ?? {}) as Record<string, Opaque<string>>).sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (content === "text" || content === "json") read[path] = content;
      else write[path] = snapshot(content) as string;
    }
  }
  return { write, read };
}

async function run(client: Atoll, inputs: ExecInputs, signal: AbortSignal): Promise<ExecResult> {
  if (inputs.image !== undefined) return runIn(client, inputs, signal);
  const folder = ".exec-files";
  const paths = Object.keys(inputs.read);
  const request = {
    language: "bash" as const,
    code: script(inputs, `mkdir -p ${folder}\n${paths.map((path, i) => `[ -f ${quote(path)} ] && cp -- ${quote(path)} ${folder}/${i}`).join("\n")}`),
    ...(paths.length ? { outputs: [folder + "/"] } : {}),
    ...(inputs.timeout_ms === undefined ? {} : { timeout: Math.max(1, Math.ceil(inputs.timeout_ms / 1000)) }),
  };
  const key = await hash(JSON.stringify([request, inputs.refresh]));
  let traceId = "";
  const result = await once(key, signal, (idempotencyKey) =>
    client.executions.run(request, { signal, idempotencyKey, onTraceId: (id) => (traceId = id) }),
  );
  const { stdout, stderr, exit_code } = result;
  const there = new Set((result.files ?? []).map((f) => f.path));
  const files = await read(inputs, async (_, i) => {
    const name = `${folder}/${i}`;
    return there.has(name) ? client.executions.file(traceId, name, { signal }) : undefined;
  });
  return { stdout, stderr, exit_code, ...files };
}

/** read reads the files that were asked for; one that is not there is left out. */
export async function read(inputs: ExecInputs, open: (path: string, i: number) => Promise<Response | undefined>): Promise<Pick<ExecResult, "files">> {
  const wanted = Object.entries(inputs.read);
  const files: Record<string, unknown> = {};
  await Promise.all(
    wanted.map(async ([path, as], i) => {
      const res = await open(path, i);
      if (res) files[path] = as === "text" ? await res.text() : await res.json();
    }),
  );
  return wanted.length ? { files } : {};
}

/** once runs what a key names, unless the server has its result already. */
async function once(key: string, signal: AbortSignal, run: (idempotencyKey?: string) => Promise<wire.ExecuteResponse>): Promise<wire.ExecuteResponse> {
  for (let attempt = cancelled.get(key) ?? 0; ; attempt++) {
    const again = () => key && cancelled.set(key, attempt + 1);
    signal.addEventListener("abort", again, { once: true });
    const r = await run(key ? `${key}-${attempt}` : undefined);
    signal.removeEventListener("abort", again);
    // Another page has cancelled what both waited for; this one still wants it.
    if (key && r.exit_code === -1 && r.error === "Cancelled by user" && attempt < 100) continue;
    if (r.error) throw new AtollError("execution_failed", r.error);
    return r;
  }
}

/** How often the execution of a key was cancelled here: its key names one that has ended. */
const cancelled = new Map<string, number>();

export const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`;

/** script runs commands in order until one fails, and then what comes last. */
export function script(inputs: ExecInputs, last: string): string {
  const write = Object.entries(inputs.write).map(([path, text]) => `mkdir -p -- "$(dirname -- ${quote(path)})" && printf %s ${quote(text)} > ${quote(path)} || exit`);
  const commands = inputs.command.map((c) => `"$S" -c ${quote(c)}`).join(" &&\n");
  return `S=$(command -v bash || command -v sh)\n${write.join("\n")}\n${commands}\ncode=$?\n${last}\nexit $code\n`;
}

/** hash names inputs; it is empty where there is no way to hash, as on pages without TLS. */
export async function hash(text: string): Promise<string> {
  if (!globalThis.crypto?.subtle) return "";
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return "reactive-" + hex(new Uint8Array(sum));
}
