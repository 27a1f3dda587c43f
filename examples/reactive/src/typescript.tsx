import { computed, exec } from "@atoll-run/atoll/reactive";
import { NAME, pattern, UI } from "@atoll-run/atoll/pattern";

// Node.js compiles TypeScript by itself; Debian's cannot, and brings Babel. Where the environment has a network,
// "npm install typescript" and "npx tsc --outDir dist" are commands like any other, and give types, too.
const compile = `
const { readFileSync, writeFileSync } = require("node:fs");
const { stripTypeScriptTypes } = require("node:module");
let js;
try {
  js = stripTypeScriptTypes(readFileSync("index.ts", "utf8"), { mode: "transform" });
} catch (e) {
  if (e.code !== "ERR_NO_TYPESCRIPT") throw e;
  const presets = [require.resolve("@babel/preset-typescript")];
  js = require("@babel/core").transformFileSync("index.ts", { presets, configFile: false, babelrc: false }).code;
}
writeFileSync("dist/index.js", js);
`;

export default pattern<{ sourceCode: string }>(({ sourceCode }) => {
  const build = exec({
    command: ["mkdir -p dist", "node --no-warnings compile.cjs", "node dist/index.js"],
    files: { "index.ts": sourceCode, "compile.cjs": compile, "dist/index.js": "text" },
    image: "node:22",
  });
  const js = computed(() => build.result?.files?.["dist/index.js"] ?? "");

  return {
    [NAME]: "TypeScript Compiler",
    [UI]: (
      <div>
        {build.pending && <ct-loader />}
        {js.get() && <pre class="js">{js.get()}</pre>}
        {build.result && <pre class="out">{build.result.stdout}</pre>}
        {(build.error || build.result?.stderr) && <pre class="error">{build.error?.message ?? build.result?.stderr}</pre>}
      </div>
    ),
    js,
  };
});
