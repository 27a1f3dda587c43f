// Runs the tests, the code of docs/reference/sdk among them, against the server of ATOLL_BASE_URL and
// ATOLL_API_KEY. npm run check looks at their types.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { extract } from "./snippets.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(root + "dist-test", { recursive: true, force: true });
extract();
const tests = readdirSync(root + "test").filter((f) => f.endsWith(".test.ts"));
const snippets = readdirSync(root + "test/snippets").filter((f) => f.endsWith(".ts"));
await build({
  entryPoints: [...tests.map((f) => `${root}test/${f}`), ...snippets.map((f) => `${root}test/snippets/${f}`)],
  outbase: root,
  outdir: root + "dist-test",
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: ["@ai-sdk/openai", "@anthropic-ai/sdk", "@langchain/*", "ai", "langchain", "react", "react-dom", "solid-js", "svelte", "vue", "@preact/signals-core"],
  alias: {
    "@atoll-run/atoll/reactive": root + "reactive/index.ts",
    "@atoll-run/atoll/ai": root + "src/integrations/ai.ts",
    "@atoll-run/atoll": root + "src/index.ts",
  },
  logLevel: "error",
});
// Solid has signals in its build for browsers alone. Node.js 20 has a WebSocket behind a flag; later ones take the flag, too.
const flags = ["--no-warnings", "--experimental-websocket", "--conditions=browser", "--test-concurrency=1", "--test-timeout=180000", "--test"];
const { status } = spawnSync(process.execPath, [...flags, ...tests.map((f) => `dist-test/test/${f.replace(/ts$/, "js")}`)], { stdio: "inherit", cwd: root });
process.exit(status ?? 1);
