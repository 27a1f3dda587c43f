type Json = unknown;

const isObject = (v: Json): v is Record<string, Json> => typeof v === "object" && v !== null && !Array.isArray(v);
const kind = (v: Json) => (v === null ? "null" : Array.isArray(v) ? "array" : typeof v);
const show = (v: Json) => (JSON.stringify(v) ?? "nothing").slice(0, 300);

/** mismatch says in what a value is not as wanted, or nothing. */
export function mismatch(want: Json, got: Json, at = "the result"): string | undefined {
  if (isObject(want)) {
    const [matcher] = Object.keys(want).filter((k) => k.startsWith("$"));
    if (matcher) return matches(matcher, want[matcher], got) ? undefined : `${at} is ${show(got)}, want ${show(want)}`;
    if (!isObject(got)) return `${at} is ${show(got)}, want ${show(want)}`;
    for (const [k, v] of Object.entries(want)) {
      const why = mismatch(v, got[k], at === "the result" ? k : `${at}.${k}`);
      if (why) return why;
    }
    return undefined;
  }
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) return `${at} is ${show(got)}, want ${show(want)}`;
    for (const [i, v] of want.entries()) {
      const why = mismatch(v, got[i], `${at}.${i}`);
      if (why) return why;
    }
    return undefined;
  }
  return Object.is(want, got) ? undefined : `${at} is ${show(got)}, want ${show(want)}`;
}

function matches(matcher: string, of: Json, got: Json): boolean {
  switch (matcher) {
    case "$any":
      return true;
    case "$match":
      return typeof got === "string" && new RegExp(of as string).test(got);
    case "$type":
      return kind(got) === of;
    case "$length":
      return (got as { length?: number } | null)?.length === of;
    case "$contains":
      return typeof got === "string" ? got.includes(of as string) : Array.isArray(got) && got.some((v) => !mismatch(of, v));
    case "$each":
      return Array.isArray(got) && got.every((v) => !mismatch(of, v));
    default:
      throw new Error("no such matcher: " + matcher);
  }
}

/**
 * gathered are events of which those that follow each other with data of one stream are one: how
 * many pieces an output comes in depends on the machine.
 */
function gathered(events: Json[]): Json[] {
  const out: { data?: Json; stream?: Json }[] = [];
  for (const e of events as { data?: Json; stream?: Json }[]) {
    const last = out.at(-1);
    if (typeof last?.data === "string" && typeof e.data === "string" && last.stream === e.stream) out[out.length - 1] = { ...last, ...e, data: last.data + e.data };
    else out.push(e);
  }
  return out as Json[];
}

/** outOfOrder says which event did not come in its place, or nothing. */
export function outOfOrder(want: Json[], got: Json[], whole: boolean): string | undefined {
  if (whole) [want, got] = [gathered(want), gathered(got)];
  if (whole && want.length !== got.length) return `${got.length} events came, want ${want.length}: ${show(got)}`;
  let next = 0;
  for (const [i, w] of want.entries()) {
    const found = whole ? (mismatch(w, got[i]) ? -1 : i) : got.findIndex((g, at) => at >= next && !mismatch(w, g));
    if (found < 0) return `event ${i}, ${show(w)}, did not come; there were ${show(got)}`;
    next = found + 1;
  }
  return undefined;
}
