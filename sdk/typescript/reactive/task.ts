import { effect, signal, type Signal } from "@preact/signals-core";
import { inHandler, Missing, onDispose, readable, slot, untracked, type Readable } from "./cells.js";

/** What a built-in is at: result and error are undefined while it is pending. */
export interface State<T> {
  readonly pending: boolean;
  readonly result: T | undefined;
  readonly error: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- as the contract has it
}

/** A built-in's output: its fields are read reactively. */
export interface Task<T> extends State<T>, Readable<State<T>> {
  /** Stops it. What nothing else waits for is cancelled on the server, too. */
  dispose(): void;
}

const idle: State<never> = { pending: false, result: undefined, error: undefined };
const pending: State<never> = { pending: true, result: undefined, error: undefined };

/** Runs of equal inputs, by what they are. */
const shared = new Map<string, Shared<unknown>>();

/** Shared is a run that several outputs wait for. */
class Shared<T> {
  users = 0;
  readonly stop = new AbortController();
  readonly done: Promise<T>;
  constructor(run: (signal: AbortSignal) => Promise<T>) {
    this.done = run(this.stop.signal);
    this.done.catch(() => undefined); // told by who waits
  }
}

/** join has one more user wait for the run of a key, which is begun if there is none. */
function join<T>(key: string, run: (signal: AbortSignal) => Promise<T>): { done: Promise<T>; leave: () => void } {
  let it = shared.get(key) as Shared<T> | undefined;
  if (!it) shared.set(key, (it = new Shared(run)));
  const mine = it;
  mine.users++;
  let left = false;
  return {
    done: mine.done,
    leave() {
      if (left) return;
      left = true;
      if (--mine.users > 0) return;
      if (shared.get(key) === mine) shared.delete(key);
      mine.stop.abort(new DOMException("no output waits for it", "AbortError"));
    },
  };
}

/** What a kind of task does with its inputs. */
export interface Kind<I, T> {
  /** Of the built-in; runs of one name and equal inputs are shared. "" shares none. */
  name: string;
  /** inputs reads what the run depends on; undefined for nothing to run. */
  inputs: () => I | undefined;
  run: (inputs: I, signal: AbortSignal) => Promise<T>;
  /** Whether runs may begin. */
  ready?: () => boolean;
}

/** task runs a kind whenever its inputs change, and shows what comes of the newest ones alone. */
export function task<I, T>(kind: Kind<I, T>): Task<T> {
  return slot(() => make(kind));
}

function make<I, T>(kind: Kind<I, T>): Task<T> {
  const state = signal<State<T>>(idle);
  let key: string | undefined;
  let generation = 0;
  let leave: (() => void) | undefined;
  const drop = () => {
    generation++;
    leave?.();
    leave = undefined;
  };

  // What a handler began is done once, with what its inputs were then.
  const frozen = inHandler();
  const stop = effect(() => {
    let inputs: I | undefined;
    let failure: unknown;
    try {
      inputs = kind.inputs();
    } catch (e) {
      if (!(e instanceof Missing)) failure = e ?? new Error("an input failed");
    }
    const ready = kind.ready?.() ?? true;
    untracked(() => {
      const next = inputs === undefined ? undefined : JSON.stringify(inputs);
      if (failure !== undefined || next === undefined) {
        key = undefined;
        drop();
        state.value = failure !== undefined ? { ...idle, error: failure } : idle;
        return;
      }
      const now = ready ? next : "waits " + next;
      if (now === key) return;
      key = now;
      drop();
      state.value = pending;
      if (!ready) return;
      begin(inputs as I, kind.name && `${kind.name} ${next}`, generation);
      if (frozen) queueMicrotask(() => stop());
    });
  });

  function begin(inputs: I, name: string, mine: number): void {
    // Changes that follow each other at once are one.
    queueMicrotask(() => {
      if (mine !== generation) return;
      const run = (signal: AbortSignal) => kind.run(inputs, signal);
      const joined = join(name || `own ${++own}`, run);
      leave = joined.leave;
      const show = (s: State<T>) => mine === generation && (state.value = s);
      joined.done.then(
        (result) => show({ ...idle, result }),
        (e: unknown) => show({ ...idle, error: e ?? new Error("it failed") }),
      );
    });
  }

  const dispose = () => {
    stop();
    drop();
    if (state.peek().pending) state.value = idle;
  };
  onDispose(dispose);
  return output(state, dispose);
}

let own = 0;

/** output shows a state. */
function output<T>(state: Signal<State<T>>, dispose: () => void): Task<T> {
  const out = {
    [readable]: true,
    get: () => state.value,
    get pending() {
      return state.value.pending;
    },
    get result() {
      // A handler keeps what it reads, so it is given what will be there.
      if (inHandler() && state.peek().pending) return later(state) as T;
      return state.value.result;
    },
    get error() {
      return state.value.error as unknown;
    },
    dispose,
  };
  return out as Task<T>;
}

/** later is a result that is not there yet: its fields are undefined until it is. */
const later = <T>(state: Signal<State<T>>): unknown =>
  new Proxy({}, { get: (_, name) => (state.value.result as Record<PropertyKey, unknown> | undefined)?.[name] });

/** settled waits until an output is not pending, and returns its result or throws its error. */
export function settled<T>(t: Task<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // An output that is made in this turn of the event loop has not begun yet.
    queueMicrotask(() => {
      let stop: (() => void) | undefined;
      let over = false;
      stop = effect(() => {
        const s = t.get();
        if (s.pending || over) return;
        over = true;
        queueMicrotask(() => stop?.());
        if (s.error !== undefined) reject(s.error as Error);
        else resolve(s.result as T);
      });
    });
  });
}
