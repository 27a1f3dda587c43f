import { SignatureError } from "./errors.js";
import type { ExecuteResponse } from "./wire.gen.js";

/** The message that reports an execution's end. */
export interface WebhookMessage {
  event: string;
  trace_id: string;
  timestamp: string;
  result: ExecuteResponse;
  output_truncated: boolean;
}

/** How a webhook is checked. */
export interface VerifyOptions {
  /** Unix seconds; the clock's if left out. */
  now?: number | undefined;
  /** Seconds that a message may be old or early; 300 if left out. */
  tolerance?: number | undefined;
}

/**
 * verifyWebhook checks the signature of a message and returns it. Pass the exact body and the headers
 * of the request. It throws a SignatureError if the message is not genuine.
 */
export async function verifyWebhook<Message = WebhookMessage>(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
  o: VerifyOptions = {},
): Promise<Message> {
  const header = (name: string): string => {
    if (headers instanceof Headers) return headers.get(name) ?? "";
    const value = Object.entries(headers).find(([n]) => n.toLowerCase() === name)?.[1];
    return (Array.isArray(value) ? value[0] : value) ?? "";
  };
  const at = header("webhook-timestamp");
  const now = o.now ?? Date.now() / 1000;
  if (!/^\d+$/.test(at) || Math.abs(now - Number(at)) > (o.tolerance ?? 300)) throw new SignatureError("the message is too old, or has no time");
  const utf8 = new TextEncoder();
  const bytes = typeof body === "string" ? utf8.encode(body) : body;
  const head = utf8.encode(`${header("webhook-id")}.${at}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const raw = secret.startsWith("whsec_") ? decode(secret.slice(6)) : utf8.encode(secret);
  const key = raw && (await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]));
  for (const word of key ? header("webhook-signature").split(" ") : []) {
    const signature = word.startsWith("v1,") ? decode(word.slice(3)) : undefined;
    // which compares in constant time
    if (signature && (await crypto.subtle.verify("HMAC", key as CryptoKey, signature, signed))) return JSON.parse(new TextDecoder().decode(bytes)) as Message;
  }
  throw new SignatureError("no signature of the message is that of the secret");
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
