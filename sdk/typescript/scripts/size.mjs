// Prints what the modules weigh in a browser, minified and compressed, and fails above the bounds.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
/** size bundles code that imports from the built package. */
async function size(contents, external = []) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true, minify: true, format: "esm", platform: "browser", target: "es2022", write: false, external,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
const core = await size(`export * from "./dist/src/index.js"`);
const both = await size(`export * from "./dist/src/index.js"; export * from "./dist/reactive/index.js"`);
const sizes = { core, reactive: both - core };
const bounds = { core: 15 << 10, reactive: 6 << 10 }; // bytes; those of reactive come on top, with its signals
console.log(JSON.stringify(sizes));
for (const [name, bound] of Object.entries(bounds)) {
  if (sizes[name] <= bound) continue;
  console.error(`${name} has ${sizes[name]} bytes, more than ${bound}`);
  process.exitCode = 1;
}
