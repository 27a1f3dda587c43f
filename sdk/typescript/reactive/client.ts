import { signal } from "@preact/signals-core";
import type { Atoll } from "../src/index.js";

/** Settings of the reactive library. */
export interface Settings {
  /** Makes the calls. */
  client: Atoll;
  /** The session of named sandboxes; default if left out. */
  session?: string | undefined;
  /** false: nothing runs, and outputs stay pending, as while a server renders a page. */
  run?: boolean | undefined;
}

const settings = signal<Settings | undefined>(undefined);

/** configure says which client the built-ins use. Outputs that were made before begin now. */
export function configure(s: Settings): void {
  settings.value = s;
}

/** ready says whether runs may begin. */
export const ready = () => settings.value !== undefined && settings.value.run !== false;

/** current returns the settings, without depending on them. */
export function current(): Settings {
  const s = settings.peek();
  if (!s) throw new Error("call configure({ client }) first");
  return s;
}
