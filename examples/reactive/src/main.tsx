import { Atoll } from "@atoll-run/atoll";
import { configure, effect, Writable } from "@atoll-run/atoll/reactive";
import { NAME, UI, type Instance } from "@atoll-run/atoll/pattern";
import { render, type ComponentChild } from "preact";
import csv from "./csv.js";
import "./elements.js";
import python from "./python.js";
import shell from "./shell.js";
import typescript from "./typescript.js";

/** What server.mjs answers. */
interface Pass {
  url: string;
  token: string;
  expires_at: string;
}

let pass: Pass | undefined;
let asking: Promise<Pass> | undefined;

async function ask(): Promise<Pass> {
  const res = await fetch("/token", { method: "POST" });
  if (!res.ok) throw new Error(`the page was given no token: ${res.status}`);
  return res.json();
}

/** current is a pass that holds for another minute. */
async function current(): Promise<Pass> {
  if (!pass || Date.parse(pass.expires_at) < Date.now() + 60_000) {
    pass = await (asking ??= ask().finally(() => (asking = undefined)));
  }
  return pass;
}

const code = Writable.of("for n in range(3):\n    print(n * n)\n");
const sourceCode = Writable.of('const greet = (name: string): string => `hello, ${name}`;\nconsole.log(greet("page"));\n');

/** editor changes a cell when what is typed is done with. */
const editor = (cell: Writable<string>) => <textarea rows={4} value={cell.get()} onChange={(e) => cell.set(e.currentTarget.value)} />;

/** show draws a pattern, now and after each change. */
function show(id: string, instance: Instance<unknown>, above?: () => ComponentChild): void {
  const root = document.querySelector("main")!.appendChild(document.createElement("section"));
  root.id = id;
  effect(() => {
    const { [NAME]: name, [UI]: view } = instance.get() as { [NAME]: string; [UI]: ComponentChild };
    render([<h2>{name}</h2>, above?.(), view], root);
  });
}

show("python", python({ code }), () => editor(code));
show("typescript", typescript({ sourceCode }), () => editor(sourceCode));
show("shell", shell({ language: "python" }));
show("csv", csv({ csvUrl: new URL("/sales.csv", location.href).href }));

// They run from here on.
const { url } = await current();
configure({ client: new Atoll({ baseUrl: url, apiKey: async () => (await current()).token }) });
