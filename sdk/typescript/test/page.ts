// What a page does: what platform.ts has, in itself and in a worker, and a view of each framework.
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { createComponent, render, template, insert } from "solid-js/web";
import { mount, unmount } from "svelte";
import { createApp, h } from "vue";
import { computed, exec, Writable } from "@atoll-run/atoll/reactive";
import { useReactive } from "@atoll-run/atoll/react";
import { createReactive } from "@atoll-run/atoll/solid";
import { readable } from "@atoll-run/atoll/svelte";
import { useReactive as useInVue } from "@atoll-run/atoll/vue";
import { use, type Place } from "./platform.js";
import View from "./View.svelte"; // which is compiled when the page is bundled

/** worker does it in a worker of the page. */
function worker(place: Place): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const w = new Worker("worker.js", { type: "module" });
    w.onmessage = (e) => resolve(e.data);
    w.onerror = (e) => reject(new Error(e.message));
    w.postMessage(place);
  });
}

/** Mount shows a button, whose text is what setup's function reads, and returns the end of that. */
type Mount = (root: HTMLElement, setup: () => () => string, click: () => void) => () => void;

const frameworks: Record<string, Mount> = {
  react(root, setup, click) {
    const app = createRoot(root);
    app.render(createElement(() => createElement("button", { onClick: click }, useReactive(setup))));
    return () => app.unmount();
  },
  vue(root, setup, click) {
    const app = createApp({
      setup() {
        const text = useInVue(setup);
        return () => h("button", { onClick: click }, text.value);
      },
    });
    app.mount(root);
    return () => app.unmount();
  },
  solid(root, setup, click) {
    const button = template("<button></button>");
    const view = () => {
      const at = button() as HTMLButtonElement;
      at.onclick = click;
      insert(at, createReactive(setup));
      return at;
    };
    return render(() => createComponent(view, {}), root);
  },
  svelte(root, setup, click) {
    const made = mount(View, { target: root, props: { store: readable(setup), click } }) as object;
    return () => void unmount(made);
  },
};

/** shows waits until an element has a text. */
function shows(root: HTMLElement, text: string): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (root.textContent !== text) return;
      observer.disconnect();
      resolve();
    };
    const observer = new MutationObserver(look);
    observer.observe(root, { childList: true, subtree: true, characterData: true });
    look();
  });
}

/** view clicks a framework's button, which changes what runs, and tells what it has shown. */
async function view(show: Mount, name: string): Promise<string[]> {
  const word = Writable.of(`${name} one`);
  const root = document.body.appendChild(document.createElement("div"));
  const seen: string[] = [];
  const observer = new MutationObserver(() => seen.push(root.textContent ?? ""));
  observer.observe(root, { childList: true, subtree: true, characterData: true });
  const end = show(
    root,
    () => {
      const run = exec({ command: computed(() => `echo ${word.get()}`) });
      return () => (run.pending ? "pending" : (run.result?.stdout.trim() ?? String(run.error)));
    },
    () => word.set(`${name} two`),
  );
  await shows(root, `${name} one`);
  root.querySelector("button")!.click();
  await shows(root, `${name} two`);
  end();
  await shows(root, "");
  observer.disconnect();
  return seen.filter((s, i) => s !== seen[i - 1]);
}

Object.assign(globalThis, {
  async exercise(place: Place) {
    const page = await use(place);
    const inWorker = await worker(place);
    const views: Record<string, string[]> = {};
    for (const [name, show] of Object.entries(frameworks)) views[name] = await view(show, name);
    return { page, worker: inWorker, views };
  },
});
