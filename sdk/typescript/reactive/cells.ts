import { batch, computed as derive, effect, signal, untracked, type ReadonlySignal, type Signal } from "@preact/signals-core";

export { batch, effect, untracked };

/** What can be read reactively: a cell, a computed value, or a result's field. */
export interface Readable<T> {
  /** Returns the value, and has what reads it run again when it changes. */
  get(): T;
}

/** A value, or a cell or computed of it, at any depth. */
export type Opaque<T> = T | Readable<T> | (T extends object ? { [K in keyof T]: Opaque<T[K]> } : never);

/** readable marks what has get(). */
export const readable: unique symbol = Symbol("readable");

/** isReadable says whether a value is to be read before it is used. */
export const isReadable = (v: unknown): v is Readable<unknown> => typeof v === "object" && v !== null && readable in v;

/** Missing is thrown while an input has no value. */
export class Missing extends Error {}

/** snapshot reads a value at every depth. A cell without a value is Missing; a field that is left out is left out. */
export function snapshot(v: unknown): unknown {
  if (isReadable(v)) {
    const value = v.get();
    if (value === undefined) throw new Missing();
    return snapshot(value);
  }
  if (Array.isArray(v)) return v.map(snapshot);
  if (v && typeof v === "object" && (v.constructor === Object || !v.constructor)) {
    const out: Record<string, unknown> = {};
    for (const k of Object.keys(v).sort()) {
      const field = (v as Record<string, unknown>)[k];
      if (field !== undefined) out[k] = snapshot(field);
    }
    return out;
  }
  return v;
}

/** A computed value. Its fields can be read as its own: summary.stars is summary.get().stars. */
export type Ref<T> = Readable<T> & { readonly value: T } & (T extends object ? Readonly<T> : unknown);

/** ref makes what reads a signal; its fields are those of the value. */
export function ref<T>(source: ReadonlySignal<T>): Ref<T> {
  const get = () => source.value;
  const own: Record<PropertyKey, unknown> = { get, [readable]: true, toString: () => String(get()), toJSON: get, [Symbol.toPrimitive]: get };
  return new Proxy(own, {
    get(_, name) {
      const value = get() as Record<PropertyKey, unknown> | null | undefined;
      if (name === "value") return value;
      if (Object.hasOwn(own, name)) return own[name];
      const field = value?.[name];
      return typeof field === "function" ? (field as (...a: unknown[]) => unknown).bind(value) : field;
    },
  }) as unknown as Ref<T>;
}

/** computed derives a value from cells, once for each change of them. */
export const computed = <T>(fn: () => T): Ref<T> => slot(() => ref(derive(fn)));

/** A cell that can be written. */
export class Writable<T> implements Readable<T> {
  private readonly source: Signal<T>;
  readonly [readable] = true;
  private constructor(value: T) {
    this.source = signal(value);
  }

  /** Makes a cell with a value. */
  static of<T>(value: T): Writable<T>;
  static of<T>(): Writable<T | undefined>;
  static of<T>(value?: T): Writable<T | undefined> {
    return slot(() => new Writable(value));
  }

  /** Returns the value, and has what reads it run again when it changes. */
  get(): T {
    return this.source.value;
  }

  /** The value, read as by get and written as by set. */
  get value(): T {
    return this.source.value;
  }

  /** Gives the cell another value, as set does. */
  set value(value: T) {
    this.source.value = value;
  }

  /** Gives the cell another value. */
  set(value: T): void {
    this.source.value = value;
  }

  /** update sets some fields, or what a function makes of the value. */
  update(change: Partial<T> | ((value: T) => T)): void {
    const before = this.source.peek();
    this.source.value = typeof change === "function" ? (change as (value: T) => T)(before) : { ...before, ...change };
  }

  /** Adds items to a list. */
  push(...items: T extends (infer Item)[] ? Item[] : never): void {
    this.source.value = [...(this.source.peek() as unknown[]), ...(items as unknown[])] as T;
  }

  /** How many items a list has. */
  get length(): number {
    return (this.get() as unknown[]).length;
  }

  /** Returns what a function makes of each item of a list. */
  map<U>(fn: (item: T extends (infer Item)[] ? Item : never, index: number) => U): U[] {
    return (this.get() as never[]).map(fn);
  }
}

let handling = 0;

/** inHandler says whether a handler runs, whose reads are for later. */
export const inHandler = () => handling > 0;

/** handler makes a function of an event, whose changes are one batch. */
export function handler<E = void>(fn: (event: E) => unknown): (event: E) => void {
  return slot(() => (event: E) => {
    handling++;
    try {
      batch(() => untracked(() => fn(event)));
    } finally {
      handling--;
    }
  });
}

// What was made before in a body that is evaluated again.
let slots: { made: unknown[]; next: number } | undefined;

/** slot makes something once for each place of a pattern's body. */
export function slot<T>(make: () => T): T {
  if (!slots) return make();
  const { made, next } = slots;
  slots.next++;
  if (next === made.length) {
    const own = slots;
    slots = undefined;
    try {
      made.push(untracked(make));
    } finally {
      slots = own;
    }
  }
  return made[next] as T;
}

type Undo = () => void;
let owner: Undo[] | undefined;

/** ended undoes what was made, newest first. */
export const ended = (undo: Undo[]) => undo.splice(0).reverse().forEach((f) => f());

/** onDispose has something undone with the scope that is being made, if there is one. */
export function onDispose(undo: Undo): void {
  owner?.push(undo);
}

/** What lives until it is ended. */
export interface Scope<T> {
  readonly value: T;
  /** Ends what was made in the scope: what nothing else waits for is cancelled on the server, too. */
  dispose(): void;
  /** Ends all that began in the scope. */
  [Symbol.dispose](): void;
}

/** scope runs a function and keeps what it makes together. */
export function scope<T>(fn: () => T): Scope<T> {
  const undo: Undo[] = [];
  const dispose = () => ended(undo);
  const before = owner;
  owner = undo;
  try {
    return { value: fn(), dispose, [Symbol.dispose]: dispose };
  } catch (e) {
    dispose();
    throw e;
  } finally {
    owner = before;
  }
}

/** What a body has made, in order, and how that is undone. */
export interface Made {
  readonly made: unknown[];
  readonly undo: (() => void)[];
}

/** replay evaluates a body: what it made before it is given again. */
export function replay<T>(m: Made, body: () => T): T {
  const before = { slots, owner };
  slots = { made: m.made, next: 0 };
  owner = m.undo;
  try {
    return body();
  } finally {
    ({ slots, owner } = before);
  }
}
