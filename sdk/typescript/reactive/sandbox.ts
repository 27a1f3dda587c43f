import { effect, signal } from "@preact/signals-core";
import { AtollError, type Atoll } from "../src/index.js";
import { unique } from "../src/transport.js";
import { isReadable, onDispose, slot, snapshot, untracked, type Opaque } from "./cells.js";
import { current, ready } from "./client.js";
import type { ExecResult } from "./exec.js";
import { task, type Task } from "./task.js";
import { toolsOf, type LLMTool } from "./tools.js";

/** What sandbox makes. */
export interface SandboxParams {
  /** That of the key's environment if left out. */
  image?: Opaque<string> | undefined;
}

/** In which state a sandbox is. */
export type SandboxStatus = "running" | "sleeping" | "destroyed";

/** A sandbox that is there as long as its scope. Its operations are done one after the other. */
export interface SandboxHandle {
  /** Read reactively. A sandbox that has not been used yet sleeps. */
  readonly status: SandboxStatus;
  readonly name: string;
  /** Runs commands in the sandbox, after what was asked of it before. */
  exec(command: Opaque<string>): Task<ExecResult>;
  /** Reads a file, after what was asked of the sandbox before. */
  readFile(path: Opaque<string>): Task<string>;
  /** Writes a file, after what was asked of the sandbox before. */
  writeFile(path: Opaque<string>, content: Opaque<string>): Task<{ ok: true }>;
  /** shell, read_file, write_file, glob and browse in this sandbox, for a model. */
  tools(): Record<string, LLMTool>;
  /** Destroys it, and cancels what goes on in it. */
  dispose(): void;
}

/** How often the status is asked for while it is shown, in milliseconds. */
const interval = 2000;

/** sandbox makes a sandbox with the first use. Another image is another sandbox. */
export function sandbox(params: Opaque<SandboxParams> | SandboxParams = {}): SandboxHandle {
  return slot(() => new Handle(params));
}

/** One sandbox on the server. */
class Box {
  readonly name = "box-" + unique();
  readonly image: string | undefined;
  readonly ended = new AbortController();
  private made: Promise<unknown> | undefined;
  private last: Promise<unknown> = Promise.resolve();
  constructor(image: string | undefined) {
    this.image = image;
  }

  get used(): boolean {
    return this.made !== undefined;
  }

  /** next does an operation after those before it, however they ended. */
  next<T>(signal: AbortSignal, work: (client: Atoll, at: { session: string | undefined; signal: AbortSignal }) => Promise<T>): Promise<T> {
    const { client, session } = current();
    const stop = AbortSignal.any([signal, this.ended.signal]);
    const mine = this.last.then(async () => {
      stop.throwIfAborted();
      // Making it is shared, so who leaves does not end it.
      this.made ??= client.sandboxes.create({ name: this.name, session: session ?? null, ...(this.image === undefined ? {} : { image: this.image }) }).catch((e: unknown) => {
        this.made = undefined;
        throw e;
      });
      await this.made;
      return work(client, { session, signal: stop });
    });
    this.last = mine.catch(() => undefined);
    return mine;
  }

  end(): void {
    this.ended.abort(new AtollError("destroyed", "the sandbox is destroyed"));
    if (!this.made) return;
    const { client, session } = current();
    void this.made.then(() => client.sandboxes.delete(this.name, { session })).catch(() => undefined);
  }
}

class Handle implements SandboxHandle {
  readonly dispose: () => void;
  private readonly box = signal<Box | undefined>(undefined);
  private readonly known = signal<SandboxStatus>("sleeping", { watched: () => this.watch(true), unwatched: () => this.watch(false) });
  private watching: ReturnType<typeof setInterval> | undefined;

  constructor(params: Opaque<SandboxParams> | SandboxParams) {
    let image: { of: string | undefined } | undefined;
    const stop = effect(() => {
      let next: { of: string | undefined } | undefined;
      try {
        next = { of: (snapshot(isReadable(params) ? params.get() : params) as { image?: string }).image };
      } catch {
        // the image is not known yet, and what is asked of the sandbox waits for it
      }
      untracked(() => {
        if (next && image && next.of === image.of) return;
        image = next;
        this.box.peek()?.end();
        this.box.value = next && new Box(next.of);
        this.known.value = "sleeping";
      });
    });
    this.dispose = () => {
      stop();
      this.watch(false);
      this.box.peek()?.end();
      this.known.value = "destroyed";
    };
    onDispose(this.dispose);
  }

  get status(): SandboxStatus {
    return this.known.value;
  }

  get name(): string {
    return this.box.value?.name ?? "";
  }

  private watch(on: boolean): void {
    clearInterval(this.watching);
    this.watching = on ? setInterval(() => void this.ask(), interval) : undefined;
    (this.watching as { unref?: () => void } | undefined)?.unref?.();
    if (on) void this.ask();
  }

  /** ask sets the status to what the server says. */
  private async ask(): Promise<void> {
    const box = this.box.peek();
    if (!box?.used || !ready()) return;
    const { client, session } = current();
    const found = await client.sandboxes.get(box.name, { session }).catch((e: unknown) => (e instanceof AtollError && e.code === "not_found" ? { status: "lost" } : undefined));
    if (!found || box !== this.box.peek() || this.known.peek() === "destroyed") return;
    this.known.value = found.status === "running" || found.status === "sleeping" ? found.status : "destroyed";
  }

  private operation<I, T>(inputs: () => I, work: (i: I, name: string, client: Atoll, at: { session: string | undefined; signal: AbortSignal }) => Promise<T>): Task<T> {
    let box: Box | undefined;
    return task<{ i: I; name: string }, T>({
      name: "",
      ready,
      inputs: () => {
        box = this.box.value;
        return box && { i: inputs(), name: box.name };
      },
      run: ({ i }, signal) => {
        const at = box!;
        return at.next(signal, async (client, o) => {
          this.known.value = "running";
          return work(i, at.name, client, o);
        });
      },
    });
  }

  exec(command: Opaque<string>): Task<ExecResult> {
    return this.operation(
      () => snapshot(command) as string,
      async (command, name, client, at) => {
        const { stdout, stderr, exit_code } = await client.sandboxes.exec(name, command, at);
        return { stdout, stderr, exit_code };
      },
    );
  }

  readFile(path: Opaque<string>): Task<string> {
    return this.operation(
      () => snapshot(path) as string,
      async (path, name, client, at) => (await client.sandboxes.files.read(name, path, at)).text(),
    );
  }

  writeFile(path: Opaque<string>, content: Opaque<string>): Task<{ ok: true }> {
    return this.operation(
      () => ({ path: snapshot(path) as string, content: snapshot(content) as string }),
      async ({ path, content }, name, client, at) => {
        await client.sandboxes.files.write(name, path, content, at);
        return { ok: true as const };
      },
    );
  }

  tools(): Record<string, LLMTool> {
    return toolsOf((tool, input, signal) => {
      const box = this.box.peek();
      if (!box) throw new AtollError("no_image", "the sandbox's image is not known yet");
      return box.next(signal ?? new AbortController().signal, (client, at) => {
        this.known.value = "running";
        return client.tools.call(tool, { ...input, sandbox: box.name }, at);
      });
    });
  }
}
