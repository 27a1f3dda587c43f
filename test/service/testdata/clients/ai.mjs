// Has Vercel's AI SDK ask our models by its provider for OpenAI. The model answers by the
// script of the test: see obedient and clever there.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const openai = createOpenAI({ baseURL: process.env.ATOLL_URL + "/v1", apiKey: process.env.ATOLL_KEY });
const model = openai.responses("clever");
const stopWhen = (isStepCount ?? stepCountIs)(5);
const tools = {
  get_weather: tool({ description: "Tells the weather.", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => "rain in " + city }),
};

const parts = {
  async text() {
    const r = await generateText({ model, system: "be brief", prompt: "say hello" });
    assert.equal(r.text, "hello");
    assert.equal(r.usage.totalTokens, 15);
    assert.equal(r.finishReason, "stop");
    const png = Buffer.from("iVBORw0KGgo=", "base64");
    const seen = await generateText({
      model,
      messages: [{ role: "user", content: [
        { type: "text", text: "see" }, { type: "file", data: png, mediaType: "image/png" }, { type: "file", data: Buffer.from("%PDF-1.4"), mediaType: "application/pdf", filename: "a.pdf" },
      ] }],
    });
    assert.match(seen.text, /input_image data:image\/png;.*input_file/);
  },
  async stream() {
    const r = streamText({ model, prompt: "say several words here" });
    let said = "";
    for await (const text of r.textStream) said += text;
    assert.equal(said, "several words here");
    assert.equal((await r.usage).totalTokens, 15);
    const kinds = new Set();
    const thinking = streamText({ model, prompt: "think reefs", providerOptions: { openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true } } });
    for await (const part of thinking.fullStream) kinds.add(part.type);
    assert.ok(kinds.has("reasoning-delta") && kinds.has("text-delta"), [...kinds].join());
    const cited = streamText({ model, prompt: "cite reefs" });
    assert.equal(await cited.text, "See reefs");
    assert.deepEqual((await cited.sources).map((s) => [s.url, s.title]), [["https://example.org/atolls", "Atolls"]]);
  },
  async tools() {
    const r = await generateText({ model, tools, stopWhen, prompt: "both" });
    assert.match(r.text, /rain in Oslo.*rain in Rome/);
    assert.equal(r.steps.length, 2);
    const streamed = streamText({ model, tools, stopWhen, prompt: "weather" });
    let said = "";
    for await (const text of streamed.textStream) said += text;
    assert.match(said, /rain in Oslo/);
    const unkept = await generateText({ model, tools, stopWhen, prompt: "both", providerOptions: { openai: { store: false } } });
    assert.match(unkept.text, /rain in Rome/);
  },
  async hosted() {
    const hosted = { code_interpreter: openai.tools.codeInterpreter({}), web_search: openai.tools.webSearch({}) };
    const ran = await generateText({ model, tools: hosted, prompt: "compute print(6 * 7)" });
    assert.match(ran.text, /42/);
    const result = ran.content.find((part) => part.type === "tool-result");
    assert.deepEqual([result.toolName, result.output.outputs], ["code_interpreter", [{ type: "logs", logs: "42\n" }]]);
    const messages = [{ role: "user", content: "compute print(6 * 7)" }, ...ran.responseMessages, { role: "user", content: "search atolls" }];
    const found = streamText({ model, tools: hosted, messages });
    const kinds = new Set();
    let said = "";
    for await (const part of found.fullStream) {
      kinds.add(part.type);
      if (part.type === "text-delta") said += part.text;
    }
    assert.match(said, /About atolls/);
    assert.ok(kinds.has("tool-call") && kinds.has("tool-result") && kinds.has("source"), [...kinds].join());
    const told = await generateText({ model, tools: hosted, messages: [...messages, ...(await found.responseMessages), { role: "user", content: "recall" }] });
    assert.match(told.text, /call: code_interpreter.*call: web_search.*Rings of coral/s);
  },
  async files() {
    const messages = [{ role: "user", content: [
      { type: "text", text: "compute print(open('a.csv').read())" }, { type: "file", data: Buffer.from("a,b\n"), mediaType: "text/csv", filename: "a.csv" },
    ] }];
    const providerOptions = { openai: { passThroughUnsupportedFiles: true } };
    assert.match((await generateText({ model, tools: { code_interpreter: openai.tools.codeInterpreter({}) }, messages, providerOptions })).text, /a,b/);
  },
  async conversation() {
    const first = await generateText({ model, tools, stopWhen, prompt: "weather" });
    const messages = [{ role: "user", content: "weather" }, ...first.responseMessages, { role: "user", content: "recall" }];
    assert.match((await generateText({ model, tools, messages })).text, /user: weather; call: get_weather; result: rain in Oslo; assistant: The result is rain in Oslo; user: recall/);
    const id = first.providerMetadata.openai.responseId;
    const chained = await generateText({ model, tools, prompt: "recall", providerOptions: { openai: { previousResponseId: id } } });
    assert.match(chained.text, /call: get_weather; result: rain in Oslo/);
    const thinking = { openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true, store: false, include: ["reasoning.encrypted_content"] } };
    const thought = await generateText({ model, prompt: "think reefs", providerOptions: thinking });
    const after = await generateText({
      model, messages: [{ role: "user", content: "think reefs" }, ...thought.responseMessages, { role: "user", content: "recall" }], providerOptions: thinking,
    });
    assert.match(after.text, /reasoning: state/);
  },
  // The package has no setting for the background, and no calls to poll and cancel with: the
  // request is changed on its way, as its documentation has it, and the rest is plain HTTP.
  async background() {
    const changed = (url, init) => fetch(url, { ...init, body: JSON.stringify({ ...JSON.parse(init.body), background: true }) });
    const behind = createOpenAI({ baseURL: process.env.ATOLL_URL + "/v1", apiKey: process.env.ATOLL_KEY, fetch: changed }).responses("clever");
    const call = async (method, path) => (await fetch(process.env.ATOLL_URL + "/v1/responses/" + path, { method, headers: { Authorization: "Bearer " + process.env.ATOLL_KEY } })).json();
    const r = streamText({ model: behind, tools, stopWhen, prompt: "weather" });
    assert.match(await r.text, /rain in Oslo/);
    const now = await call("GET", (await r.providerMetadata).openai.responseId);
    assert.ok(now.background && now.status === "completed", JSON.stringify(now));
    const long = streamText({ model: behind, tools: { code_interpreter: openai.tools.codeInterpreter({}) }, prompt: "compute import time; time.sleep(60)", include: { rawChunks: true }, includeRawChunks: true });
    let id, cancelled;
    for await (const part of long.fullStream) {
      if (part.type === "raw" && part.rawValue.response) id = part.rawValue.response.id;
      if (part.type === "raw" && part.rawValue.type === "response.code_interpreter_call.interpreting") cancelled = await call("POST", id + "/cancel");
    }
    assert.equal(cancelled.status, "cancelled");
    assert.equal((await call("GET", id)).status, "cancelled");
  },
  async structured() {
    const shape = z.object({ city: z.string(), celsius: z.number() });
    const r = await generateText({ model, prompt: "json", output: Output.object({ schema: shape }) });
    assert.deepEqual(r.output, { city: "Oslo", celsius: 7 });
  },
};
for (const [name, part] of Object.entries(parts)) {
  await part();
  console.log(name);
}
