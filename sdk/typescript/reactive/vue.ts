import { onScopeDispose, shallowRef, type ShallowRef } from "vue";
import { pageView } from "./subscribe.js";

/** useReactive shows what setup's function reads. What setup makes ends with the component. */
export function useReactive<T>(setup: () => () => T): Readonly<ShallowRef<T>> {
  const made = pageView(setup);
  const out = shallowRef(made.get());
  made.subscribe(() => (out.value = made.get()));
  onScopeDispose(made.dispose);
  return out;
}
