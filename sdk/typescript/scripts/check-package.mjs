// Makes the npm tarball of dist and of another build, which must be the same bytes, and uses it as an empty folder's only
// package: its types are looked at strictly, and its modules are loaded.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "atoll-npm-check-"));
const run = (program, ...args) => execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const code = `
import { Atoll, type ExecutionStream } from "@atoll-run/atoll";
import { configure, exec, settled, Writable } from "@atoll-run/atoll/reactive";

const client = new Atoll({ baseUrl: "http://127.0.0.1:1", apiKey: "k" });
const events: ExecutionStream = client.executions.stream({ code: "print(1)" });
// @ts-expect-error -- a program is a text
void (() => client.execute(1));
configure({ client, run: false });
const run = exec({ command: Writable.of("true") });
void (() => settled(run).then((r) => r.stdout.length));
console.log(typeof events.cancel, run.pending);
`;

try {
  const pack = (...args) => run(process.execPath, join(root, "scripts/package.mjs"), ...args).trim().split("\n").at(-1);
  const tarball = pack(join(folder, "a"));
  const again = pack(join(folder, "b"), join(root, "dist"));
  if (!readFileSync(tarball).equals(readFileSync(again))) throw new Error(`${tarball} has other bytes when it is made again`);
  writeFileSync(join(folder, "package.json"), '{"private": true, "type": "module"}');
  run("npm", "install", "--silent", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--install-links", tarball, join(root, "node_modules/@preact/signals-core"));
  writeFileSync(join(folder, "use.ts"), code);
  const lib = "es2023,esnext.disposable,dom,dom.iterable,dom.asynciterable";
  const said = run(process.execPath, root + "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", lib, "use.ts");
  const printed = run(process.execPath, "use.js");
  if (said || printed !== "function true\n") throw new Error(`it says ${said}${printed}`);
} catch (e) {
  if (e.stdout) console.error(e.stdout); // of the compiler
  throw e;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
