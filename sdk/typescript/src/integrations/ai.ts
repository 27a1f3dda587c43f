import { jsonSchema, tool, type ToolSet } from "ai";
import type { Atoll } from "../client.js";
import { call, definitions, type ToolsOptions } from "./tools.js";

export type { ToolsOptions };

/** tools are a session's, for Vercel's ai: generateText({ model, tools: await tools(client, "chat-7"), … }). */
export async function tools(client: Atoll, session: string, options?: ToolsOptions): Promise<ToolSet> {
  const all = (await definitions(client, options)).map(({ name, description, inputSchema }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<object>(inputSchema as Parameters<typeof jsonSchema>[0]),
      execute: (input, { abortSignal }) => call(client, session, name, input, abortSignal),
    }),
  ]);
  return Object.fromEntries(all) as ToolSet;
}
