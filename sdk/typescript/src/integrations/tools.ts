import type { Atoll } from "../client.js";
import { APIError } from "../errors.js";

/** Options of tools() for each framework. */
export interface ToolsOptions {
  /** Which tools; all if left out. */
  names?: readonly string[] | undefined;
}

/** A tool as a model sees it. */
export interface Definition {
  name: string;
  description: string;
  inputSchema: { type: "object"; properties: Record<string, object>; required: string[]; additionalProperties: false };
}

/** definitions asks the server for its tools. */
export async function definitions(client: Atoll, { names }: ToolsOptions = {}): Promise<Definition[]> {
  const told = (await client.tools.list({ format: "mcp" })) as Definition[];
  const unknown = names?.filter((name) => !told.some((one) => one.name === name));
  if (unknown?.length) throw new TypeError(`the server has no tools ${unknown.join(", ")}`);
  return told.filter((one) => !names || names.includes(one.name));
}

/** call returns what a tool returns. It reports errors that the model caused to the model, and throws all others. */
export async function call(client: Atoll, session: string, name: string, input: unknown, signal?: AbortSignal | null): Promise<object> {
  try {
    return await client.tools.call<object>(name, input as object, { session, signal: signal ?? undefined });
  } catch (e) {
    if (e instanceof APIError && [400, 404, 409, 413, 422].includes(e.status)) return { error: e.code, message: e.reason };
    throw e;
  }
}
