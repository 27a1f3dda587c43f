import { unique } from "./transport.js";

/** Bytes to send: all at once, or as a stream, which is read no faster than it is sent. */
export type Content = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

interface Encoded {
  value: unknown;
  type: string | undefined;
  /** Whether it can be sent only once. */
  once: boolean;
}

/** encode makes the body of a request. */
export function encode(r: { json?: unknown; content?: Content | undefined; type?: string | undefined }): Encoded {
  if (r.json !== undefined) return { value: JSON.stringify(r.json), type: "application/json", once: false };
  if (r.content === undefined) return { value: undefined, type: undefined, once: false };
  const type = r.type ?? "application/octet-stream";
  return isStream(r.content) ? { value: streamOf(r.content), type, once: true } : { value: r.content, type, once: false };
}

const isStream = (c: Content): c is ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> =>
  typeof c === "object" && !(c instanceof Blob) && (c instanceof ReadableStream || Symbol.asyncIterator in c);

/** streamOf reads an async iterable on demand. */
export function streamOf(c: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  if (c instanceof ReadableStream) return c;
  const from = c[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(to) {
      const { done, value } = await from.next();
      if (done) to.close();
      else to.enqueue(value);
    },
    async cancel(reason) {
      await from.return?.(reason);
    },
  });
}

/** A file to upload. */
export interface Upload {
  filename: string;
  content: Content;
  type?: string | undefined;
}

/** form makes multipart/form-data, as a stream if a file of it is one. */
export function form(files: readonly (readonly [field: string, file: Upload])[], fields: Record<string, string | number | undefined> = {}): { content: Content; type: string } {
  const boundary = "atoll-" + unique();
  const quote = (s: string) => s.replace(/["\r\n]/g, encodeURIComponent);
  const begin = (name: string, more: string) => `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"${more}\r\n\r\n`;
  const parts: Content[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) parts.push(begin(name, ""), `${value}\r\n`);
  }
  for (const [field, file] of files) {
    parts.push(begin(field, `; filename="${quote(file.filename)}"\r\nContent-Type: ${file.type ?? "application/octet-stream"}`), file.content, "\r\n");
  }
  parts.push(`--${boundary}--\r\n`);
  const content = parts.some(isStream) ? joined(parts) : new Blob(parts as BlobPart[]);
  return { content, type: "multipart/form-data; boundary=" + boundary };
}

async function* joined(parts: Content[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield* isStream(part) ? read(streamOf(part)) : read(new Blob([part as BlobPart]).stream());
}

/** read yields what a stream has; leaving the loop cancels the stream. */
export async function* read(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const from = stream.getReader();
  try {
    for (let part = await from.read(); !part.done; part = await from.read()) yield part.value;
  } finally {
    from.cancel().catch(() => undefined); // it was cut or is over
  }
}
