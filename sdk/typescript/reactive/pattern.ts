import { effect, signal } from "@preact/signals-core";
import { ended, onDispose, ref, replay, Writable, type Made, type Ref } from "./cells.js";

/** The name and the view of a pattern. */
export const NAME = "$NAME";
/** The key of what a pattern shows. */
export const UI = "$UI";

/** A pattern's inputs, as cells. */
export type Cells<I> = { [K in keyof I]: Writable<I[K]> };

/** What a body came to, read reactively. */
export type Instance<O> = Ref<O> & {
  /** Ends all that the instance runs. */
  dispose(): void;
};

/**
 * pattern makes a component of a body: what it makes is made once for each place, and the body is
 * evaluated again when what it read changes, as with hooks. Inputs become cells, unless they are some.
 */
export function pattern<I extends object, O = unknown>(body: (inputs: Cells<I>) => O): (inputs: { [K in keyof I]: I[K] | Writable<I[K]> }) => Instance<O> {
  return (inputs) => {
    const own = Object.fromEntries(Object.entries(inputs).map(([k, v]) => [k, v instanceof Writable ? v : Writable.of(v)])) as Cells<I>;
    const m: Made = { made: [], undo: [] };
    const out = signal<O | undefined>(undefined);
    const stop = effect(() => {
      out.value = replay(m, () => body(own));
    });
    const dispose = () => (stop(), ended(m.undo));
    onDispose(dispose);
    return new Proxy(ref(out) as Ref<O>, { get: (t, name) => (name === "dispose" ? dispose : Reflect.get(t, name)) }) as Instance<O>;
  };
}
