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

/** form makes multipart/form-data, as a stream if the file is one. */
export function form(field: string, file: Upload, fields: Record<string, string | number | undefined> = {}): { content: Content; type: string } {
  const boundary = "atoll-" + crypto.randomUUID();
  const quote = (s: string) => s.replace(/["\r\n]/g, encodeURIComponent);
  let head = "";
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) head += `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"\r\n\r\n${value}\r\n`;
  }
  head += `--${boundary}\r\nContent-Disposition: form-data; name="${quote(field)}"; filename="${quote(file.filename)}"\r\n`;
  head += `Content-Type: ${file.type ?? "application/octet-stream"}\r\n\r\n`;
  const tail = `\r\n--${boundary}--\r\n`;
  const { content } = file;
  const type = "multipart/form-data; boundary=" + boundary;
  if (!isStream(content)) return { content: new Blob([head, content as BlobPart, tail]), type };
  const bytes = new TextEncoder();
  return { content: joined(bytes.encode(head), streamOf(content), bytes.encode(tail)), type };
}

async function* joined(head: Uint8Array, body: ReadableStream<Uint8Array>, tail: Uint8Array): AsyncGenerator<Uint8Array> {
  yield head;
  const from = body.getReader();
  try {
    for (let part = await from.read(); !part.done; part = await from.read()) yield part.value;
  } finally {
    await from.cancel();
  }
  yield tail;
}
