import { DynamicStructuredTool } from "@langchain/core/tools";
import type { Atoll } from "../client.js";
import { call, definitions, type ToolsOptions } from "./tools.js";

export type { ToolsOptions };

/** tools are a session's, for LangChain: createAgent({ model, tools: await tools(client, "chat-7") }). */
export async function tools(client: Atoll, session: string, options?: ToolsOptions): Promise<DynamicStructuredTool[]> {
  return (await definitions(client, options)).map(
    ({ name, description, inputSchema }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: inputSchema,
        func: async (input, _, config) => JSON.stringify(await call(client, session, name, input, config?.signal)),
      }),
  );
}
