// Looks at the types of the package, its tests, and the code of docs/reference/sdk, which needs the built package, at its size, and at the npm package.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { extract } from "./snippets.mjs";

const cwd = fileURLToPath(new URL("..", import.meta.url));
extract();
await import("./documented.mjs");
for (const args of [["scripts/build.mjs"], ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "tsconfig.test.json"], ["scripts/size.mjs"], ["scripts/check-package.mjs"]]) {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit", cwd });
  if (status !== 0) process.exit(status ?? 1);
}
