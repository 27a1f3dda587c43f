// Writes the npm tarball into a folder. The same commit gives the same bytes.
//
//   node scripts/package.mjs FOLDER [MODULES, which are built if it is left out]
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [folder, modules] = process.argv.slice(2);
const made = mkdtempSync(join(tmpdir(), "atoll-npm-")); // and not here, where others may be building
try {
  if (modules) cpSync(modules, join(made, "dist"), { recursive: true });
  else execFileSync(process.execPath, [root + "node_modules/typescript/bin/tsc", "-p", root + "tsconfig.json", "--outDir", join(made, "dist")], { stdio: "inherit" });
  const { devDependencies, scripts, ...published } = JSON.parse(readFileSync(root + "package.json", "utf8"));
  writeFileSync(join(made, "package.json"), JSON.stringify(published, null, 2) + "\n");
  for (const name of ["README.md", "LICENSE"]) copyFileSync(root + name, join(made, name));
  // npm gives files their modes, but a fixed time.
  for (const at of readdirSync(made, { recursive: true, withFileTypes: true })) chmodSync(join(at.parentPath, at.name), at.isDirectory() ? 0o755 : 0o644);
  mkdirSync(folder, { recursive: true });
  const said = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], { cwd: made, encoding: "utf8" });
  console.log(join(folder, said.trim()));
} finally {
  rmSync(made, { recursive: true, force: true });
}
