// Writes the TypeScript of docs into test/snippets, a module each, with what it prints.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const pages = fileURLToPath(new URL("../../../docs/", import.meta.url));
const folder = fileURLToPath(new URL("../test/snippets/", import.meta.url));

export function extract() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const all = [];
  for (const file of ["sdk/typescript", "sdk/reactive", "coming-from"]) {
    const page = file.replace("sdk/", "");
    const text = readFileSync(`${pages}${file}.md`, "utf8");
    const blocks = /(<!-- test: elsewhere [^>]*-->\n)?```ts\n(.*?)```\n(?:```text\n(.*?)```\n)?/gs;
    for (const { index, 1: elsewhere, 2: code, 3: prints } of text.matchAll(blocks)) {
      const line = text.slice(0, index).split("\n").length;
      const name = `${page}_${line}`;
      writeFileSync(`${folder}${name}.ts`, code);
      all.push({ name, runs: !elsewhere, prints: prints ?? "" });
    }
  }
  writeFileSync(`${folder}all.json`, JSON.stringify(all));
}
