import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { createRoot } from "solid-js";
import { get } from "svelte/store";
import { effectScope } from "vue";
import { Atoll } from "../src/index.js";
import { computed, configure, exec, Writable } from "../reactive/index.js";
import { useReactive as useInReact } from "../reactive/react.js";
import { createReactive } from "../reactive/solid.js";
import { readable } from "../reactive/svelte.js";
import { useReactive as useInVue } from "../reactive/vue.js";

let runs = 0;
before(() => configure({ client: new Atoll({ fetch: (...a) => (runs++, fetch(...a)) }) }));

/** setup is what a component makes: a run of what a cell says. */
const setup = (word: Writable<string>) => () => {
  const run = exec({ command: computed(() => `echo ${word.get()}`) });
  return () => (run.pending ? "pending" : run.result!.stdout.trim());
};

async function until(what: () => boolean): Promise<void> {
  for (const end = Date.now() + 20_000; !what(); await new Promise((r) => setTimeout(r, 10))) assert.ok(Date.now() < end, "it did not come to pass");
}

/** page has views take this for a browser. */
function page(use: () => Promise<void>): () => Promise<void> {
  return async () => {
    Object.assign(globalThis, { window: globalThis });
    try {
      await use();
    } finally {
      Reflect.deleteProperty(globalThis, "window");
    }
  };
}

test("a server that renders React shows what is pending, and runs nothing", async () => {
  const word = Writable.of("one");
  const View = () => createElement("p", null, useInReact(setup(word)));
  assert.equal(renderToString(createElement(View)), "<p>pending</p>");
  await new Promise((r) => setTimeout(r, 50));
  assert.equal(runs, 0);
});

test(
  "Vue",
  page(async () => {
    const word = Writable.of("one");
    const scope = effectScope();
    const out = scope.run(() => useInVue(setup(word)))!;
    assert.equal(out.value, "pending");
    await until(() => out.value === "one");
    word.set("two");
    assert.equal(out.value, "pending");
    await until(() => out.value === "two");
    scope.stop();
    word.set("three");
    assert.equal(out.value, "two");
  }),
);

test(
  "Solid",
  page(async () => {
    const word = Writable.of("one");
    const { out, end } = createRoot((end) => ({ out: createReactive(setup(word)), end }));
    await until(() => out() === "one");
    word.set("two");
    await until(() => out() === "two");
    end();
  }),
);

test(
  "Svelte",
  page(async () => {
    const word = Writable.of("one");
    const store = readable(setup(word));
    const seen: string[] = [];
    const stop = store.subscribe((v) => seen.push(v));
    await until(() => seen.at(-1) === "one");
    assert.equal(get(store), "one");
    word.set("two");
    await until(() => seen.at(-1) === "two");
    stop();
    assert.deepEqual(seen, ["pending", "one", "pending", "two"]);
  }),
);
