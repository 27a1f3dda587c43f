import { effect, untracked } from "@preact/signals-core";
import { scope } from "./cells.js";

/** subscribe calls show with what read returns, now and after each change of what it read. It returns the end of that. */
export function subscribe<T>(read: () => T, show: (value: T) => void): () => void {
  return effect(() => {
    const value = read();
    untracked(() => show(value));
  });
}

/** A view's scope: what its setup makes, and what is shown of it. */
export interface View<T> {
  /** What is shown now. */
  get(): T;
  /** Calls changed after each change. */
  subscribe(changed: () => void): () => void;
  /** Ends all that the setup made. */
  dispose(): void;
}

/** view makes what a component shows. setup makes cells and built-ins, and returns what reads them. */
export function view<T>(setup: () => () => T): View<T> {
  const made = scope(setup);
  let value!: T;
  const listeners = new Set<() => void>();
  const stop = subscribe(made.value, (v) => {
    value = v;
    for (const changed of listeners) changed();
  });
  return {
    get: () => value,
    subscribe(changed) {
      listeners.add(changed);
      return () => void listeners.delete(changed);
    },
    dispose() {
      stop();
      made.dispose();
    },
  };
}

/** pageView is a view that a framework keeps. While a server renders a page it ends at once, and shows what is pending. */
export function pageView<T>(setup: () => () => T): View<T> {
  const made = view(setup);
  if (typeof document === "undefined" && !("window" in globalThis)) made.dispose();
  return made;
}
