// Looks at the types of the package, its tests, and the code of docs/sdk, which needs the built package.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { extract } from "./snippets.mjs";

const cwd = fileURLToPath(new URL("..", import.meta.url));
extract();
for (const args of [["scripts/build.mjs"], ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "tsconfig.test.json"]]) {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit", cwd });
  if (status !== 0) process.exit(status ?? 1);
}
