// The contract's agent loop, driven by the official SDK: the model behind
// ANTHROPIC_BASE_URL says which tools to call, and each call goes to the server.
import Anthropic from "@anthropic-ai/sdk";

const { ATOLL_URL, ATOLL_API_KEY, ANTHROPIC_BASE_URL } = process.env;
const headers = { Authorization: "Bearer " + ATOLL_API_KEY, "Content-Type": "application/json" };
const client = new Anthropic({ apiKey: "none", baseURL: ANTHROPIC_BASE_URL, maxRetries: 0 });
const tools = await (await fetch(ATOLL_URL + "/v1/tools?format=anthropic", { headers })).json();

async function handleToolCall(name, input) {
  const response = await fetch(`${ATOLL_URL}/v1/sessions/agent-loop/tools/${name}`, { method: "POST", headers, body: JSON.stringify(input) });
  const body = await response.json();
  return { content: JSON.stringify(body), isError: !response.ok || (body.exit_code ?? 0) !== 0 };
}

const messages = [{ role: "user", content: "Build it and show me." }];
while (true) {
  const response = await client.messages.create({ model: "claude-sonnet-4-5-20250514", max_tokens: 4096, tools, messages });
  messages.push({ role: "assistant", content: response.content });
  if (response.stop_reason !== "tool_use") {
    console.log(response.content.filter((b) => b.type === "text").map((b) => b.text).join(""));
    break;
  }
  const results = [];
  for (const block of response.content) {
    if (block.type !== "tool_use") continue;
    const result = await handleToolCall(block.name, block.input);
    results.push({ type: "tool_result", tool_use_id: block.id, content: result.content, is_error: result.isError });
  }
  messages.push({ role: "user", content: results });
}
