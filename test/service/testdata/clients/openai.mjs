// Drives responses by OpenAI's client for JavaScript. The model answers by the script of
// the test: see obedient and clever there.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.env.ATOLL_URL + "/v1", apiKey: process.env.ATOLL_KEY });
const sandbox = [{ type: "sandbox" }];
const weather = {
  type: "function", name: "get_weather", strict: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
};
const item = (response, type) => response.output.find((i) => i.type === type);

const parts = {
  async text() {
    const r = await client.responses.create({ model: "clever", input: "say hello", instructions: "be brief", metadata: { a: "b" } });
    assert.equal(r.output_text, "hello");
    assert.equal(r.usage.total_tokens, 15);
    assert.deepEqual(r.metadata, { a: "b" });
  },
  async create() {
    const r = await client.responses.create({ model: "clever", input: "run print(6 * 7)", tools: sandbox });
    assert.equal(item(r, "sandbox_results").results[0].stdout, "42\n");
    const got = await client.responses.retrieve(r.id);
    assert.deepEqual(got.output, r.output);
  },
  async stream() {
    const numbers = [];
    let said = "";
    const stream = client.responses.stream({ model: "clever", input: "run print(6 * 7)", tools: sandbox });
    stream.on("response.output_text.delta", (e) => (said += e.delta));
    for await (const event of stream) numbers.push(event.sequence_number);
    const final = await stream.finalResponse();
    assert.deepEqual(numbers, numbers.map((_, i) => i));
    assert.equal(said, final.output_text);
    assert.match(said, /42/);
  },
  async background() {
    const stream = await client.responses.create({ model: "clever", input: "slow", background: true, stream: true });
    let id, last;
    for await (const event of stream) {
      id ??= event.response?.id;
      last = event.sequence_number;
      if (event.type === "response.output_text.delta") break;
    }
    assert.equal((await client.responses.retrieve(id)).status, "in_progress");
    assert.equal((await client.responses.cancel(id)).status, "cancelled");
    const rest = [];
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last })) rest.push(event);
    assert.equal(rest[0].sequence_number, last + 1);
    assert.equal(rest.at(-1).response.status, "cancelled");
    await client.responses.delete(id);
    await assert.rejects(client.responses.retrieve(id), OpenAI.NotFoundError);
  },
  async poll() {
    let r = await client.responses.create({ model: "clever", input: "run print(6 * 7)", tools: sandbox, background: true });
    while (r.status === "queued" || r.status === "in_progress") {
      await new Promise((resolve) => setTimeout(resolve, 50));
      r = await client.responses.retrieve(r.id);
    }
    assert.equal(r.status, "completed");
    assert.match(r.output_text, /42/);
  },
  // Files of the input go into the sandbox. For those that are shared the client has no method, and gets them as it gets anything.
  async files() {
    const content = [{ type: "input_text", text: "run print(open('a.csv').read())" }, { type: "input_file", filename: "a.csv", file_data: "data:text/csv;base64,YSxiCg==" }];
    const read = await client.responses.create({ model: "clever", input: [{ role: "user", content }], tools: sandbox });
    assert.match(read.output_text, /a,b/);
    const r = await client.responses.create({ model: "clever", input: "share", tools: sandbox });
    const shared = item(r, "share_file");
    const listed = await client.get(`/responses/${r.id}/files`);
    assert.deepEqual(listed.data.map((f) => [f.id, f.filename]), [[shared.file_id, "made.csv"]]);
    const got = await client.get(`/responses/${r.id}/files/${shared.file_id}/content`, { __binaryResponse: true });
    assert.equal(await got.text(), "a,b\n");
  },
  async functions() {
    const r = await client.responses.create({ model: "clever", input: "both", tools: [weather] });
    const outputs = r.output.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "rain in " + JSON.parse(call.arguments).city }));
    const end = await client.responses.create({ model: "clever", input: outputs, tools: [weather], previous_response_id: r.id });
    assert.match(end.output_text, /rain in Oslo.*rain in Rome/);
    const whole = await client.responses.create({ model: "clever", input: [{ role: "user", content: "both" }, ...r.output, ...outputs], tools: [weather], store: false });
    assert.match(whole.output_text, /rain in Rome/);
  },
  async conversation() {
    const first = await client.responses.create({ model: "clever", input: "run open('f', 'w').write('kept')", tools: sandbox });
    const second = await client.responses.create({ model: "clever", input: "run print(open('f').read())", tools: sandbox, previous_response_id: first.id });
    assert.match(second.output_text, /kept/);
    const texts = [];
    for await (const input of client.responses.inputItems.list(second.id)) texts.push(input.content[0].text);
    assert.deepEqual(texts, ["run print(open('f').read())"]);
  },
  async structured() {
    const shape = z.object({ city: z.string(), celsius: z.number().int() });
    const r = await client.responses.parse({ model: "clever", input: "json", text: { format: zodTextFormat(shape, "weather") } });
    assert.deepEqual(r.output_parsed, { city: "Oslo", celsius: 7 });
    const tool = zodResponsesFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) });
    const called = await client.responses.parse({ model: "clever", input: "weather", tools: [tool] });
    assert.deepEqual(item(called, "function_call").parsed_arguments, { city: "Oslo" });
  },
};
for (const [name, part] of Object.entries(parts)) {
  await part();
  console.log(name);
}
