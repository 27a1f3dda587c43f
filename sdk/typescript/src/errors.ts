import type { ErrorResponse } from "./wire.gen.js";

/** The root of every error of this library. */
export class AtollError extends Error {
  /** For programs: the server's code, or connection, timeout, invalid_signature or unsupported of this library. */
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** No answer came: the server is away, or the network between. */
export class ConnectionError extends AtollError {
  constructor(message: string, options?: ErrorOptions) {
    super("connection", message, options);
  }
}

/** The call's own time-out is over. */
export class TimeoutError extends AtollError {
  constructor(ms: number) {
    super("timeout", `no answer within ${ms} ms; give the call a longer timeout, or 0 for none`);
  }
}

/** A stream broke off and could not be taken up again. */
export class StreamError extends ConnectionError {}

/** A webhook's message that its sender did not sign, or that is too old. */
export class SignatureError extends AtollError {
  constructor(message: string) {
    super("invalid_signature", message);
  }
}

/** A refusal or failure that the server answered with. */
export class APIError extends AtollError {
  /** Of HTTP. */
  readonly status: number;
  /** Names the request in the server's log. */
  readonly requestId: string;
  /** With rate_limited: which limit it is. */
  readonly dimension: string | undefined;
  /** With rate_limited: when the limit starts anew, if it does. */
  readonly resetsAt: Date | undefined;
  /** Milliseconds after which the server expects a retry, if it said so. */
  readonly retryAfter: number | undefined;
  /** The server's message. */
  readonly reason: string;
  /** How to fix the error, if the code implies it. */
  readonly advice: string | undefined;
  /** The whole answer, as JSON if it is that. */
  readonly body: unknown;

  constructor(status: number, code: string, message: string, requestId: string, retryAfter: number | undefined, body: unknown) {
    super(code, `${message} (${status} ${code}${requestId && ", " + requestId})`);
    const told = (typeof body === "object" ? body : null) as Partial<ErrorResponse> | null;
    this.status = status;
    this.reason = message;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.dimension = told?.dimension;
    this.resetsAt = told?.resets_at ? new Date(told.resets_at) : undefined;
    this.advice = advices[code];
    this.body = body;
  }
}

/** 400: the request is wrong; the message says what to change. */
export class ValidationError extends APIError {}
/** 401: the key or token is missing or not valid. */
export class AuthenticationError extends APIError {}
/** 403: the key may not do this. */
export class PermissionError extends APIError {}
/** 404: the object does not exist, or belongs to another tenant. */
export class NotFoundError extends APIError {}
/** 409: the present state forbids this. */
export class ConflictError extends APIError {}
/** 429: over a rate or another limit; dimension names it. */
export class RateLimitError extends APIError {}
/** 503: nothing was started; try again later. */
export class UnavailableError extends APIError {}
/** The program ran longer than its timeout; body has its output so far. */
export class ProgramTimeoutError extends APIError {}

const classes: Record<number, typeof APIError> = {
  400: ValidationError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
  503: UnavailableError,
  504: ProgramTimeoutError,
};

const advices: Record<string, string> = {
  unauthorized: "Give the client a valid apiKey, or set ATOLL_API_KEY.",
  forbidden: "Use a key with the scope that the message names.",
  not_found: "Check the id, and that the key belongs to the tenant that made it.",
  rate_limited: "Wait until resetsAt, or raise the limit that dimension names.",
  payload_too_large: "Send less, or upload a file.",
  service_unavailable: "Nothing was started. Try again after retryAfter.",
  internal_error: "Look for requestId in the server's log.",
  gateway_timeout: "Give the program a longer timeout. body has its output so far.",
};

interface Told {
  error?: string | { code?: string; type?: string; message?: string };
  code?: string;
  message?: string;
}

/** refused reads the error that a server answered with. */
export async function refused(res: Response): Promise<APIError> {
  const text = await res.text().catch(() => "");
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // a proxy's page, say
  }
  const told = (body && typeof body === "object" ? body : {}) as Told;
  const open = typeof told.error === "object" && told.error ? told.error : undefined; // of responses
  const code = open?.code ?? open?.type ?? told.code ?? (typeof told.error === "string" ? told.error : undefined) ?? "http_" + res.status;
  const message = open?.message ?? told.message ?? `the server answered ${res.status} ${res.statusText}`.trim();
  const Class = classes[res.status] ?? APIError;
  return new Class(res.status, code, message, res.headers.get("x-trace-id") ?? "", retryAfter(res.headers), body);
}

/** retryAfter returns the milliseconds of Retry-After, which is seconds or a date. */
export function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (!value) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
