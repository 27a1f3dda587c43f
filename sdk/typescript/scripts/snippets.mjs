// Writes the TypeScript of docs into test/snippets, a module each, with what it prints.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const pages = fileURLToPath(new URL("../../../docs/", import.meta.url));
const folder = fileURLToPath(new URL("../test/snippets/", import.meta.url));

/** extract leaves alone what is there already: another run may be reading it. */
export function extract() {
  mkdirSync(folder, { recursive: true });
  const all = [];
  const wanted = new Map();
  for (const file of ["reference/sdk/typescript", "reference/sdk/reactive", "how-to/migrate-from-another-sandbox"]) {
    const page = file.split("/").at(-1);
    const text = readFileSync(`${pages}${file}.md`, "utf8");
    const blocks = /(<!-- test: elsewhere [^>]*-->\n)?```ts\n(.*?)```\n(?:```text\n(.*?)```\n)?/gs;
    for (const { index, 1: elsewhere, 2: code, 3: prints } of text.matchAll(blocks)) {
      const line = text.slice(0, index).split("\n").length;
      const name = `${page}_${line}`;
      wanted.set(`${name}.ts`, code);
      all.push({ name, runs: !elsewhere, prints: prints ?? "" });
    }
  }
  wanted.set("all.json", JSON.stringify(all));
  const there = readdirSync(folder);
  for (const name of there) if (!wanted.has(name)) rmSync(folder + name, { recursive: true });
  for (const [name, content] of wanted) if (!there.includes(name) || readFileSync(folder + name, "utf8") !== content) writeFileSync(folder + name, content);
}
