import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";

const here = fileURLToPath(new URL(".", import.meta.url));
const all = JSON.parse(readFileSync(here + "../../test/snippets/all.json", "utf8")) as { name: string; runs: boolean; prints: string }[];

for (const { name, runs, prints } of all) {
  if (!runs) continue; // it is compiled
  test(`the snippet of line ${name.split("_")[1]} of ${name.split("_")[0]}.md`, async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", `${here}snippets/${name}.js`], { timeout: 60_000 });
    assert.equal(stdout, prints);
  });
}
