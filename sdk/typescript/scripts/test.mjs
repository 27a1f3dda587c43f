// Builds the package and its tests, the code of docs/sdk among them, and runs all against
// the server of ATOLL_URL and ATOLL_API_KEY.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { extract } from "./snippets.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit", cwd: root });
  if (status !== 0) process.exit(status ?? 1);
};
rmSync(root + "dist-test", { recursive: true, force: true });
run("scripts/build.mjs");
extract();
run("node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json");
// Solid has signals in its build for browsers alone. Node.js 20 has a WebSocket behind a flag; later ones take the flag, too.
run("--no-warnings", "--experimental-websocket", "--conditions=browser", "--test-concurrency=1", "--test", ...["trouble", "reactive", "frameworks", "docs"].map((t) => `dist-test/test/${t}.test.js`));
