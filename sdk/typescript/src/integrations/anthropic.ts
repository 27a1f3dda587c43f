import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type { Atoll } from "../client.js";
import { call, definitions, type ToolsOptions } from "./tools.js";

export type { ToolsOptions };

/** tools are a session's, for Anthropic's tool runner: client.beta.messages.toolRunner({ tools: await tools(client, "chat-7"), … }). */
export async function tools(client: Atoll, session: string, options?: ToolsOptions): Promise<BetaRunnableTool<object>[]> {
  return (await definitions(client, options)).map(({ name, description, inputSchema }) => ({
    type: "custom",
    name,
    description,
    input_schema: inputSchema,
    parse: (input) => input as object,
    run: async (input, context) => JSON.stringify(await call(client, session, name, input, context?.signal)),
  }));
}
