// Fails where an exported name, or a public method of one, has no comment: the API reference is made of them.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const kinds = new Set([ts.SyntaxKind.ClassDeclaration, ts.SyntaxKind.InterfaceDeclaration, ts.SyntaxKind.TypeAliasDeclaration, ts.SyntaxKind.FunctionDeclaration]);
const methods = new Set([ts.SyntaxKind.MethodDeclaration, ts.SyntaxKind.GetAccessor]);
const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
let bad = 0;
let names = 0;
const paths = ["src", "reactive"].flatMap((dir) => readdirSync(`${cwd}/${dir}`, { recursive: true }).map((name) => `${dir}/${name}`));
for (const path of paths.filter((path) => path.endsWith(".ts"))) {
  const file = ts.createSourceFile(path, readFileSync(`${cwd}/${path}`, "utf8"), ts.ScriptTarget.Latest, true);
  const check = (node, before) => {
    names++;
    if (node.jsDoc || before?.jsDoc) return;
    bad++;
    console.error(`${path}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${node.name?.getText() ?? "this"} has no comment`);
  };
  const overloaded = new Map(); // the first signature has the comment of all
  for (const node of file.statements) {
    if (!kinds.has(node.kind) || !(ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export)) continue;
    const name = node.name.text;
    check(node, overloaded.get(name));
    if (!overloaded.has(name)) overloaded.set(name, node);
    if (node.kind !== ts.SyntaxKind.ClassDeclaration) continue;
    const first = new Map();
    for (const member of node.members) {
      const of = member.name?.getText() ?? "";
      if (!methods.has(member.kind) || of.startsWith("#") || of.startsWith("_") || ts.getCombinedModifierFlags(member) & hidden) continue;
      check(member, first.get(of));
      if (!first.has(of)) first.set(of, member);
    }
  }
}
if (names < 500) throw new Error(`there are ${names} names; are the sources read?`);
if (bad > 0) process.exit(1);
