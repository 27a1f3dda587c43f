import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Atoll } from "../src/index.js";
import {
  batch, computed, configure, exec, fetchData, handler, readSandboxFile, sandbox, scope, settled, Writable, writeSandboxFile, type ExecResult,
} from "../reactive/index.js";
import { pattern, UI } from "../reactive/pattern.js";

let runs: string[] = []; // the programs that were sent, by the key of each
const client = new Atoll({
  fetch: (input, init) => {
    const headers = init?.headers as Record<string, string> | undefined;
    if (String(input).endsWith("/v1/sandbox/execute")) runs.push(headers?.["Idempotency-Key"] ?? "");
    return fetch(input, init);
  },
});
const salt = Math.random().toString(36).slice(2); // no other run of these tests has the same inputs
before(() => configure({ client, session: "reactive-" + salt }));
after(() => client.close());

/** until waits for a condition. */
async function until(what: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
  for (const end = Date.now() + ms; !(await what()); await new Promise((r) => setTimeout(r, 20))) assert.ok(Date.now() < end, "it did not come to pass");
}

test("exec runs again when its inputs change, and shows nothing that was superseded", async () => {
  const code = Writable.of(`print('${salt}', 1)`);
  using at = scope(() => exec({ command: computed(() => `python3 -c "${code.get()}"`) }));
  const run = at.value;
  assert.deepEqual([run.pending, run.result, run.error], [true, undefined, undefined]);
  assert.equal((await settled(run)).stdout, `${salt} 1\n`);
  code.set("import time; time.sleep(30)");
  assert.deepEqual([run.pending, run.result, run.error], [true, undefined, undefined]);
  await until(async () => (await client.executions.list({ status: "running" })).data.length === 1);
  code.set(`print('${salt}', 2)`);
  assert.equal((await settled(run)).stdout, `${salt} 2\n`);
  await client.close();
  await until(async () => (await client.executions.list({ status: "running" })).data.length === 0);
});

test("equal inputs are one run, also after all that asked are gone", async () => {
  const params = () => ({ command: `echo ${salt} $RANDOM$RANDOM` });
  runs = [];
  const first = scope(() => Array.from({ length: 20 }, () => exec(params())));
  const results = await Promise.all(first.value.map(settled));
  assert.equal(new Set(results.map((r) => r.stdout)).size, 1);
  assert.equal(runs.length, 1);
  first.dispose();
  using later = scope(() => exec(params()));
  assert.equal((await settled(later.value)).stdout, results[0]!.stdout);
});

test("500 cells with 50 inputs make 50 runs", async () => {
  runs = [];
  using all = scope(() => Array.from({ length: 500 }, (_, i) => exec({ command: `echo ${salt} ${i % 50}` })));
  // The plan bounds how many run at once; what it refuses is tried again.
  await until(() => all.value.every((r) => !r.pending), 120_000);
  assert.deepEqual(all.value.filter((r) => r.result?.exit_code !== 0).map((r) => r.error), []);
  assert.equal(new Set(runs).size, 50);
});

test("commands run in order until one fails; files are written before and read after", async () => {
  const content = Writable.of('{"n": 1}');
  using at = scope(() =>
    exec({ command: ["cp in.json out.json", "echo two; exit 3", "echo three"], files: { "in.json": content, "out.json": "json", "/tmp/none": "text" } }),
  );
  assert.deepEqual(await settled(at.value), { stdout: "two\n", stderr: "", exit_code: 3, files: { "out.json": { n: 1 } } });
  using list = scope(() => exec({ command: "echo it\\'s > '/tmp/a b'", files: ["/tmp/a b"] }));
  assert.deepEqual((await settled(list.value)).files, { "/tmp/a b": "it's\n" });
});

test("nothing runs while an input has no value, and a batch is one run", async () => {
  const a = Writable.of<string>();
  const b = Writable.of("b");
  runs = [];
  using at = scope(() => exec({ command: ["echo", a as never, b].length ? (computed(() => a.get() && `echo ${salt} ${a.get()} ${b.get()}`) as never) : "" }));
  assert.deepEqual([at.value.pending, at.value.result, at.value.error], [false, undefined, undefined]);
  batch(() => (a.set("1"), b.set("2")));
  a.set("3");
  assert.equal((await settled(at.value)).stdout, `${salt} 3 2\n`);
  assert.equal(runs.length, 1);
  a.set(undefined);
  assert.deepEqual([at.value.pending, at.value.result], [false, undefined]);
});

test("errors are values", async () => {
  using at = scope(() => exec({ command: "sleep 9", timeout_ms: 500 }));
  await until(() => !at.value.pending);
  assert.equal(at.value.error.code, "gateway_timeout");
  assert.equal(at.value.result, undefined);
  using bad = scope(() => exec({ command: computed(() => JSON.parse("{") as string) }));
  assert.match(String(bad.value.error), /JSON/);
});

test("teardown cancels only its own", async () => {
  const params = { command: `sleep 2; echo ${salt} kept` };
  const one = scope(() => exec(params));
  using two = scope(() => exec(params));
  // On a busy machine it may have ended before it is seen.
  await until(async () => !two.value.pending || (await client.executions.list({ status: "running" })).data.length === 1);
  one.dispose();
  assert.equal((await settled(two.value)).stdout, `${salt} kept\n`);
  const alone = scope(() => exec({ command: `sleep 30; echo ${salt}` }));
  await until(async () => (await client.executions.list({ status: "running" })).data.length === 1);
  alone.dispose();
  await until(async () => (await client.executions.list({ status: "running" })).data.length === 0);
});

test("an image is a sandbox that equal inputs share", async () => {
  const params = () => ({ image: "default", command: [`echo ${salt} $RANDOM > f`, "cat f"], files: { f: "text" as const } });
  using at = scope(() => exec(params()));
  const first = await settled(at.value);
  assert.equal(first.files!.f, first.stdout);
  at.dispose();
  using again = scope(() => exec(params()));
  assert.deepEqual(await settled(again.value), first);
});

test("a sandbox does what it is told in order, and ends with its scope", async () => {
  const at = scope(() => sandbox({}));
  const box = at.value;
  assert.equal(box.status, "sleeping");
  const wrote = box.writeFile("f", "1\n");
  const ran = box.exec("sleep 0.3; echo 2 >> f");
  const read = box.readFile("f");
  assert.equal(await settled(read), "1\n2\n");
  assert.deepEqual(wrote.result, { ok: true });
  assert.equal(ran.result!.exit_code, 0);
  assert.equal(box.status, "running");
  using write = scope(() => writeSandboxFile({ sandbox: box.name, path: "g", content: '{"a": 1}' }));
  assert.deepEqual(await settled(write.value), { ok: true });
  using json = scope(() => readSandboxFile<{ a: number }>({ sandbox: box.name, path: "g", mode: "json" }));
  assert.deepEqual(await settled(json.value), { a: 1 });
  const tools = box.tools();
  assert.deepEqual(Object.keys(tools), ["shell", "read_file", "write_file", "glob", "browse"]);
  assert.equal((await tools.shell!.execute({ command: "cat f" })).stdout, "1\n2\n");
  const long = box.exec("sleep 30");
  await until(() => long.pending);
  at.dispose();
  assert.equal(box.status, "destroyed");
  await until(async () => (await client.sandboxes.list({ session: "reactive-" + salt })).data.every((s) => s.name !== box.name));
});

test("the tools are those of the server", async () => {
  using at = scope(() => sandbox({}));
  const known = (await client.tools.list({ format: "anthropic" })) as { name: string; description: string; input_schema: { properties: Record<string, unknown> } }[];
  for (const [name, tool] of Object.entries(at.value.tools())) {
    const want = structuredClone(known.find((t) => t.name === name)!);
    delete want.input_schema.properties.sandbox;
    assert.deepEqual({ name, description: tool.description, input_schema: tool.parameters }, want);
  }
});

test("the shell of the seed", async () => {
  const Shell = pattern<{ language: "python" | "node" }, { history: Writable<ExecResult[]>; run: (e: { command: string }) => void; [UI]: string }>(({ language }) => {
    const sb = sandbox({ image: computed(() => (language.get() === "python" ? "python:3" : "node:20")) });
    const history = Writable.of<ExecResult[]>([]);
    const run = handler<{ command: string }>(({ command }) => {
      const result = sb.exec(command);
      history.push(result.result!);
    });
    return { history, run, [UI]: history.map((entry) => entry.stdout ?? "…").join("") };
  });
  const shell = Shell({ language: "python" });
  shell.get().run({ command: "echo one" });
  shell.get().run({ command: "echo two" });
  assert.equal(shell.get()[UI], "……");
  await until(() => shell.get()[UI] === "one\ntwo\n");
  shell.dispose();
});

test("fetchData and what is computed of it", async () => {
  const path = Writable.of("");
  using at = scope(() => {
    const got = fetchData({ url: computed(() => path.get() && process.env.ATOLL_BASE_URL + path.get()), mode: "text" });
    return { got, length: computed(() => (got.result ?? "").length) };
  });
  assert.equal(at.value.got.pending, false);
  path.set("/openapi.json");
  assert.equal(at.value.got.pending, true);
  await settled(at.value.got);
  assert.ok(at.value.length.get() > 1000);
  path.set("/nothing");
  await until(() => !at.value.got.pending);
  assert.equal(at.value.got.error.code, "http_404");
  assert.equal(at.value.got.result, undefined);
});
