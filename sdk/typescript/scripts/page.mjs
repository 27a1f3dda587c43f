// Writes what a page of the tests loads into a folder: page.js and worker.js, bundled with the package as it is built.
//
//   node scripts/page.mjs FOLDER
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { compile } from "svelte/compiler";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = process.argv[2];
const dist = join(folder, "package"); // and not dist, which others may be building
execFileSync(process.execPath, [root + "node_modules/typescript/bin/tsc", "-p", root + "tsconfig.json", "--outDir", dist], { stdio: "inherit" });
const { name, exports } = JSON.parse(readFileSync(root + "package.json", "utf8"));
const alias = Object.fromEntries(
  Object.entries(exports)
    .filter(([, to]) => to.default)
    .map(([at, to]) => [name + at.slice(1), to.default.replace("./dist", dist)])
    .sort(([a], [b]) => b.length - a.length), // the package itself is the beginning of the others
);
const svelte = {
  name: "svelte",
  setup(b) {
    b.onLoad({ filter: /\.svelte$/ }, async ({ path }) => ({ contents: compile(await readFile(path, "utf8"), { filename: path }).js.code }));
  },
};
await build({
  entryPoints: [root + "test/page.ts", root + "test/worker.ts"],
  outdir: folder,
  bundle: true,
  format: "esm",
  platform: "browser",
  conditions: ["browser", "production"],
  define: { "process.env.NODE_ENV": '"production"', __VUE_OPTIONS_API__: "true", __VUE_PROD_DEVTOOLS__: "false", __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false" },
  target: "es2022",
  alias,
  nodePaths: [root + "node_modules"],
  plugins: [svelte],
  logLevel: "error",
});
