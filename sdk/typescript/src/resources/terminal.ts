import { AtollError, ConnectionError } from "../errors.js";
import { backoff, p, pause, type Transport } from "../transport.js";
import type { TerminalMessage, TerminalTicket } from "../wire.gen.js";
import { within, type SandboxOptions } from "./sandboxes.js";

/** How a terminal is opened. */
export interface TerminalOptions extends SandboxOptions {
  rows?: number | undefined;
  columns?: number | undefined;
  /** Instead of an interactive shell. */
  command?: string | undefined;
  working_dir?: string | undefined;
  /** A terminal that there is, by its process_id. */
  process?: string | undefined;
  /** A cursor: output after it is shown. */
  after?: number | undefined;
  /** false: a connection that breaks is the end. */
  reconnect?: boolean | undefined;
}

const maxReopens = 6;

/** openTerminal waits until the terminal has begun. */
export async function openTerminal(t: Transport, sandbox: string, ticket: () => Promise<TerminalTicket>, o: TerminalOptions = {}): Promise<Terminal> {
  const WebSocket = t.options.WebSocket ?? globalThis.WebSocket;
  if (!WebSocket) throw new AtollError("unsupported", "this platform has no WebSocket: give the client one, such as that of the package ws");
  const query = { ...within(o), rows: o.rows, columns: o.columns, command: o.command, working_dir: o.working_dir };
  const terminal = new Terminal(async (process, after) => {
    const { ticket: word } = await ticket();
    const socket = new WebSocket(t.url(p`/v1/sandboxes/${sandbox}/terminal`, { ...query, process, after, ticket: word }).replace(/^http/, "ws"));
    socket.binaryType = "arraybuffer";
    return socket;
  }, o);
  await terminal.begun;
  return terminal;
}

/** A terminal: iterate it for what it shows. */
export class Terminal implements AsyncIterable<Uint8Array> {
  /** Names the terminal, for TerminalOptions.process. */
  processId: string;
  /** Behind it is what has not been shown, for TerminalOptions.after. */
  cursor: number | undefined;
  /** How its program ended. */
  readonly exited: Promise<{ exit_code: number | null; reason?: string | undefined }>;
  /** Resolves when the terminal is there. */
  readonly begun: Promise<void>;

  private readonly connect: (process?: string, after?: number) => Promise<WebSocket>;
  private readonly o: TerminalOptions;
  private socket: WebSocket | undefined;
  private readonly shown: Uint8Array[] = [];
  private wake = () => {};
  private over = false;
  private failure: unknown;
  private start!: () => void;
  private fail!: (e: unknown) => void;
  private exit!: (m: { exit_code: number | null; reason?: string | undefined }) => void;

  constructor(connect: (process?: string, after?: number) => Promise<WebSocket>, o: TerminalOptions) {
    this.connect = connect;
    this.o = o;
    this.processId = o.process ?? "";
    this.cursor = o.after;
    this.begun = new Promise((resolve, reject) => ((this.start = resolve), (this.fail = reject)));
    this.exited = new Promise((resolve) => (this.exit = resolve));
    o.signal?.addEventListener("abort", () => this.end(o.signal!.reason), { once: true });
    void this.keep();
  }

  /** keep holds a connection until the terminal ends. */
  private async keep(): Promise<void> {
    for (let failed = 0; !this.over; failed++) {
      try {
        this.socket = await this.connect(this.processId || undefined, this.cursor);
        const heard = await this.listen(this.socket);
        if (this.over) return;
        if (heard) failed = 0;
      } catch (e) {
        return this.end(e);
      }
      if (!this.processId || this.o.reconnect === false || failed >= maxReopens) return this.end(new ConnectionError("the terminal's connection broke off"));
      await pause(backoff(failed));
    }
  }

  /** listen takes messages until the connection ends, and says whether there were any. */
  private listen(socket: WebSocket): Promise<boolean> {
    return new Promise((resolve) => {
      let heard = false;
      socket.onmessage = ({ data }: MessageEvent) => {
        heard = true;
        if (typeof data !== "string") {
          this.shown.push(new Uint8Array(data as ArrayBuffer));
          return this.wake();
        }
        const m = JSON.parse(data) as TerminalMessage;
        if (m.process_id) this.processId = m.process_id;
        if (m.cursor !== undefined) this.cursor = m.cursor;
        if (m.type === "started") this.start();
        if (m.type === "exit") {
          this.exit({ exit_code: m.exit_code ?? null, reason: m.reason });
          this.end();
        }
      };
      socket.onclose = () => resolve(heard);
      socket.onerror = () => resolve(heard);
    });
  }

  private end(failure?: unknown): void {
    if (this.over) return;
    this.over = true;
    this.failure = failure;
    this.begun.catch(() => undefined); // told by the iterator, too
    this.fail(failure);
    this.socket?.close();
    this.wake();
  }

  /** Types. */
  write(content: string | Uint8Array): void {
    this.socket?.send(typeof content === "string" ? new TextEncoder().encode(content) : (content as Uint8Array<ArrayBuffer>));
  }

  /** Changes the terminal's size. */
  resize(rows: number, columns: number): void {
    this.socket?.send(JSON.stringify({ type: "resize", rows, columns }));
  }

  /** Ends the connection; the terminal's program goes on. */
  close(): void {
    this.end();
  }

  /** Closes the connection; the program goes on. */
  [Symbol.dispose](): void {
    this.end();
  }

  /** Yields what the terminal shows. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const part = this.shown.shift();
      if (part) yield part;
      else if (this.failure !== undefined) throw this.failure;
      else if (this.over) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}
