import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, stepCountIs } from "ai";
import { createAgent } from "langchain";
import { Atoll } from "../src/index.js";
import { tools as forAI } from "../src/integrations/ai.js";
import { tools as forAnthropic } from "../src/integrations/anthropic.js";
import { tools as forLangChain } from "../src/integrations/langchain.js";

/** What the scripted model asks for, one call a turn; then it says what they gave. */
const calls: [name: string, input: object][] = [
  ["write_file", { path: "notes.txt", content: "kept\n" }],
  ["shell", { command: "cat notes.txt; exit 3" }],
  ["read_file", { path: "none.txt" }],
];

/** chat is the model as a provider of Chat Completions, which LangChain and ai speak to. */
function chat(asked: any): object {
  const given = asked.messages.filter((m: any) => m.role === "tool").map((m: any) => m.content);
  const next = calls[given.length];
  if (next) assert.ok(asked.tools.some((t: any) => t.function.name === next[0] && t.function.parameters.properties), "the model was told of the tool");
  const message = next
    ? { role: "assistant", content: null, tool_calls: [{ id: `call_${given.length}`, type: "function", function: { name: next[0], arguments: JSON.stringify(next[1]) } }] }
    : { role: "assistant", content: given.join(" ") };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return { id: `chat_${given.length}`, object: "chat.completion", created: 1, model: "m", choices: [{ index: 0, message, finish_reason: next ? "tool_calls" : "stop" }], usage };
}

/** messages is the model as a provider of Anthropic's Messages. The runner sends what is new. */
function messages(): (asked: any) => object {
  const given: string[] = [];
  return (asked) => {
    const results = [asked.messages.at(-1).content].flat().filter((block: any) => block.type === "tool_result");
    given.push(...results.map((block: any) => block.content));
    const next = calls[given.length];
    const content = next ? { type: "tool_use", id: `toolu_${given.length}`, name: next[0], input: next[1] } : { type: "text", text: given.join(" ") };
    const usage = { input_tokens: 1, output_tokens: 1 };
    return { id: `msg_${given.length}`, type: "message", role: "assistant", model: "m", content: [content], stop_reason: next ? "tool_use" : "end_turn", stop_sequence: null, usage };
  };
}

/** task drives a framework with a model, and looks at what came of the calls. */
function task(model: (asked: any) => object, run: (client: Atoll, session: string, url: string) => Promise<string>): () => Promise<void> {
  return async () => {
    const provider = createServer(async (req, res) => {
      let body = "";
      for await (const part of req) body += part;
      res.setHeader("Content-Type", "application/json");
      try {
        res.end(JSON.stringify(model(JSON.parse(body))));
      } catch (e) {
        res.writeHead(400).end(JSON.stringify({ error: { message: String(e) } }));
      }
    });
    await new Promise<void>((done) => provider.listen(0, "127.0.0.1", done));
    const client = new Atoll();
    const session = `typescript-${process.pid}`;
    try {
      const said = await run(client, session, `http://127.0.0.1:${(provider.address() as AddressInfo).port}`);
      for (const want of ['"ok":true', '"stdout":"kept\\n"', '"exit_code":3', '"error":"not_found"']) assert.ok(said.includes(want), said);
    } finally {
      provider.closeAllConnections();
      provider.close();
      for (const { name } of (await client.sandboxes.list({ session })).data) await client.sandbox(name, { session }).delete();
    }
  };
}

test(
  "LangChain",
  task(chat, async (client, session, baseURL) => {
    const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL } });
    const agent = createAgent({ model, tools: await forLangChain(client, session, { names: ["write_file", "shell", "read_file"] }) });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
    return messages.at(-1)!.text;
  }),
);

test(
  "ai",
  task(chat, async (client, session, baseURL) => {
    const model = createOpenAI({ baseURL, apiKey: "k" }).chat("m");
    return (await generateText({ model, tools: await forAI(client, session), stopWhen: stepCountIs(5), prompt: "go" })).text;
  }),
);

test(
  "Anthropic's tool runner",
  task(messages(), async (client, session, baseURL) => {
    const runner = new Anthropic({ baseURL, apiKey: "k" }).beta.messages.toolRunner({
      model: "m",
      max_tokens: 100,
      tools: await forAnthropic(client, session),
      messages: [{ role: "user", content: "go" }],
    });
    const [last] = (await runner).content;
    return last?.type === "text" ? last.text : "";
  }),
);

test("a tool that the server does not have is refused, and so is a key", async () => {
  await assert.rejects(forAI(new Atoll(), "s", { names: ["shell", "none"] }), /no tools none$/);
  const { shell } = await forAI(new Atoll(), "s");
  await assert.rejects(forAI(new Atoll({ apiKey: "none" }), "s"), { status: 401 });
  assert.ok(shell);
});
