// Prints what the modules weigh in a browser: minified and compressed.
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
console.log(JSON.stringify({ core, reactive: both - core }));
