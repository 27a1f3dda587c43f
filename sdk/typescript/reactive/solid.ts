import { createSignal, onCleanup, type Accessor } from "solid-js";
import { pageView } from "./subscribe.js";

/** createReactive shows what setup's function reads. What setup makes ends with its owner. */
export function createReactive<T>(setup: () => () => T): Accessor<T> {
  const made = pageView(setup);
  const [out, set] = createSignal<T>(made.get(), { equals: false });
  made.subscribe(() => set(() => made.get()));
  onCleanup(made.dispose);
  return out;
}
