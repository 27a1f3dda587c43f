import type { Readable } from "svelte/store";
import { pageView, type View } from "./subscribe.js";

/** readable is a store of what setup's function reads. What setup makes is there while there are subscribers. */
export function readable<T>(setup: () => () => T): Readable<T> {
  let made: View<T> | undefined;
  let users = 0;
  return {
    subscribe(run) {
      const mine = (made ??= pageView(setup));
      users++;
      run(mine.get());
      const stop = mine.subscribe(() => run(mine.get()));
      return () => {
        stop();
        if (--users > 0) return;
        mine.dispose();
        made = undefined;
      };
    },
  };
}
