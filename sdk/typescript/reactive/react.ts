import { useEffect, useMemo, useSyncExternalStore, type DependencyList } from "react";
import { pageView } from "./subscribe.js";

/** useReactive shows what setup's function reads. What setup makes ends with the component, or when deps change. */
export function useReactive<T>(setup: () => () => T, deps: DependencyList = []): T {
  const kept = useMemo(() => {
    const made = pageView(setup);
    let ending: ReturnType<typeof setTimeout> | undefined;
    // Strict mode unmounts and mounts again at once, which is no end.
    const hold = () => (clearTimeout(ending), () => void (ending = setTimeout(made.dispose)));
    return { ...made, hold };
  }, deps); // eslint-disable-line react-hooks/exhaustive-deps -- the caller's
  useEffect(kept.hold, [kept]);
  return useSyncExternalStore(kept.subscribe, kept.get, kept.get);
}
