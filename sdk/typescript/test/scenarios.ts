// Does the steps of sdk/scenarios with this library: see sdk/scenarios/README.md.
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { Atoll, AtollError, APIError, verifyWebhook } from "../src/index.js";
import { calls, type Args, type Told } from "./scenario_calls.js";
import { mismatch, outOfOrder } from "./scenario_match.js";

interface Step {
  call?: string;
  join?: string;
  with?: Args;
  expect?: unknown;
  error?: Args;
  stream?: unknown[];
  whole?: boolean;
  save?: Record<string, string>;
  cancel_after_events?: number;
  cancel_after_ms?: number;
  timeout_ms?: number;
  background?: string;
  until?: boolean;
  as?: string;
  through?: string;
}

/** How a call ended: with a result or events, or with an error. */
interface Outcome {
  result?: unknown;
  events?: unknown[];
  error?: unknown;
  cancelled: boolean;
}

const env = (name: string): string => process.env[name] ?? "";

function client(step: Step): Atoll {
  const keys: Record<string, string> = { default: env("ATOLL_API_KEY"), admin: env("ATOLL_ADMIN_KEY"), other: env("ATOLL_OTHER_KEY"), none: "" };
  const baseUrl = step.through ? `${env("ATOLL_TROUBLE_URL")}/${step.through}` : env("ATOLL_BASE_URL");
  return new Atoll({ baseUrl, apiKey: keys[step.as ?? "default"] });
}

/** bytes is what a download comes to. */
async function bytes(res: Response): Promise<unknown> {
  const hash = createHash("sha256");
  let n = 0;
  const kept: Uint8Array[] = [];
  for await (const part of res.body ?? []) {
    hash.update(part);
    n += part.length;
    if (n <= 1 << 20) kept.push(part);
  }
  const whole = Buffer.concat(kept);
  let content: string | undefined;
  try {
    content = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole);
  } catch {
    // it is not text
  }
  const small = n <= 1 << 20 ? { content, content_base64: whole.toString("base64") } : {};
  return { bytes: n, sha256: hash.digest("hex"), ...small };
}

async function perform(step: Step, args: Args): Promise<Outcome> {
  const stop = new AbortController();
  const { max_retries, reconnect, ...rest } = args;
  const told: Told = { signal: stop.signal };
  if (step.timeout_ms !== undefined) told.timeout = step.timeout_ms;
  if (max_retries !== undefined) told.maxRetries = max_retries as number;
  if (reconnect !== undefined) told.reconnect = reconnect as boolean;
  const events: unknown[] = [];
  let outcome: Outcome;
  const timer = step.cancel_after_ms === undefined ? undefined : setTimeout(() => stop.abort(), step.cancel_after_ms);
  const c = client(step);
  try {
    if (step.call === "webhooks.verify") {
      const result = await verifyWebhook(rest.body as string, rest.headers as Record<string, string>, rest.secret as string, { now: rest.now as number });
      return { result, cancelled: false };
    }
    const call = calls[step.call!];
    if (!call) throw new Error("this library has no " + step.call);
    let result: unknown = await call(c, rest, told);
    if (result instanceof Response) result = await bytes(result);
    else if (result && typeof result === "object" && Symbol.asyncIterator in result) {
      for await (const e of result as AsyncIterable<{ type: string }>) {
        if (e.type === "keepalive") continue;
        if (events.push(e) === step.cancel_after_events) stop.abort();
      }
    }
    if (known[step.call!]?.answer === "none") result = null;
    outcome = { result: result ?? null, events, cancelled: false };
  } catch (error) {
    outcome = { error, events, cancelled: stop.signal.aborted && error === stop.signal.reason };
  } finally {
    clearTimeout(timer);
  }
  await c.close();
  return outcome;
}

/** judge says in what an outcome is not as the step has it, or nothing. */
function judge(step: Step, o: Outcome): string | undefined {
  const cancels = step.cancel_after_events !== undefined || step.cancel_after_ms !== undefined;
  if (cancels && !o.cancelled) return `it was not cancelled: ${o.error ?? JSON.stringify(o.result)}`;
  if (step.error) {
    if (!(o.error instanceof AtollError)) return `no error of the library came: ${o.error ?? JSON.stringify(o.result)}`;
    const e = o.error;
    const api = e instanceof APIError ? e : undefined;
    const told = { code: e.code, message: api?.reason ?? e.message, ...(api ? { status: api.status, result: api.body } : {}) };
    return mismatch(step.error, told, "the error");
  }
  if (o.error !== undefined && !cancels) return `it failed: ${o.error}`;
  if (step.stream) return outOfOrder(step.stream, o.events ?? [], step.whole ?? false);
  if (cancels || !("expect" in step)) return undefined;
  return mismatch(step.expect, o.result);
}

/** fill puts saved values where they are named. */
function fill(v: unknown, saved: Args): unknown {
  if (typeof v === "string") {
    const whole = /^\$\{(\w+)\}$/.exec(v);
    if (whole) return named(whole[1]!, saved);
    return v.replace(/\$\{(\w+)\}/g, (_, name: string) => String(named(name, saved)));
  }
  if (Array.isArray(v)) return v.map((x) => fill(x, saved));
  if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, x]) => [fill(k, saved), fill(x, saved)]));
  return v;
}

function named(name: string, saved: Args): unknown {
  const value = saved[name] ?? process.env[name];
  if (value === undefined) throw new Error(`nothing is saved as ${name}`);
  return value;
}

const at = (o: Outcome, path: string): unknown =>
  path.split(".").reduce<unknown>((v, k) => (v as Args | undefined)?.[k], path.startsWith("events.") ? { events: o.events } : o.result);

async function scenario(steps: Step[]): Promise<void> {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  const saved: Args = { unique: Array.from(randomBytes(8), (b) => letters[b % 32]).join("") };
  const background: Record<string, Promise<Outcome>> = {};
  for (const [i, raw] of steps.entries()) {
    const step = fill(raw, saved) as Step;
    const deadline = Date.now() + 30_000;
    for (;;) {
      let outcome: Outcome;
      if (step.join) outcome = await background[step.join]!;
      else {
        const running = perform(step, step.with ?? {});
        if (step.background) {
          background[step.background] = running;
          break;
        }
        outcome = await running;
      }
      const why = judge(step, outcome);
      if (!why) {
        for (const [name, path] of Object.entries(step.save ?? {})) {
          saved[name] = at(outcome, path);
          if (saved[name] === undefined) throw new Error(`step ${i + 1}, ${step.call}: the result has no ${path}`);
        }
        break;
      }
      if (!step.until || Date.now() > deadline) throw new Error(`step ${i + 1}, ${step.call ?? step.join}: ${why}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

// Node.js 20 has a WebSocket behind a flag.
if (!globalThis.WebSocket && !process.execArgv.includes("--experimental-websocket")) {
  const { status } = spawnSync(process.execPath, ["--experimental-websocket", "--no-warnings", ...process.argv.slice(1)], { stdio: "inherit" });
  process.exit(status ?? 1);
}
const folder = process.argv[2] ?? process.env.ATOLL_SCENARIOS ?? new URL("../../../scenarios/", import.meta.url).pathname;
const { calls: known } = JSON.parse(await readFile(`${folder}/calls.json`, "utf8")) as { calls: Record<string, { answer: string }> };
const only = new RegExp(process.env.ATOLL_SCENARIO ?? "");
const all: { name: string; steps: Step[] }[] = [];
for (const file of (await readdir(folder)).filter((f) => f.endsWith(".json") && f !== "calls.json").sort()) {
  const { area, scenarios } = JSON.parse(await readFile(`${folder}/${file}`, "utf8")) as { area: string; scenarios: { name: string; steps: Step[] }[] };
  all.push(...scenarios.map((s) => ({ ...s, name: `${area}/${s.name}` })));
}
const lacking = Object.keys(known).filter((name) => !(name in calls) && name !== "webhooks.verify");
let failed = lacking.length > 0;
if (failed) console.log(JSON.stringify({ name: "calls", ok: false, why: "this library lacks " + lacking.join(", "), ms: 0 }));
const waiting = all.filter((s) => only.test(s.name));
async function worker(): Promise<void> {
  for (let s = waiting.shift(); s; s = waiting.shift()) {
    const begun = performance.now();
    const why = await scenario(s.steps).then(
      () => "",
      (e: unknown) => String((e as Error).message ?? e),
    );
    failed ||= why !== "";
    console.log(JSON.stringify({ name: s.name, ok: !why, why, ms: Math.round(performance.now() - begun) }));
  }
}
await Promise.all(Array.from({ length: Number(process.env.ATOLL_PARALLEL ?? 4) }, worker));
process.exitCode = failed ? 1 : 0;
