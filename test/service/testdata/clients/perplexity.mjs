// Drives responses by Perplexity's client for JavaScript. The model answers by the script
// of the test: see obedient and clever there.
import assert from "node:assert/strict";
import Perplexity from "@perplexity-ai/perplexity_ai";

const client = new Perplexity({ baseURL: process.env.ATOLL_URL, apiKey: process.env.ATOLL_KEY });
const sandbox = [{ type: "sandbox" }];
const weather = { type: "function", name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
const item = (response, type) => response.output.find((i) => i.type === type);

async function ended(r) {
  while (r.status === "queued" || r.status === "in_progress") {
    await new Promise((resolve) => setTimeout(resolve, 50));
    r = await client.responses.retrieve(r.id);
  }
  return r;
}

const parts = {
  async create() {
    const r = await client.responses.create({ model: "clever", input: "run print(6 * 7)", tools: sandbox, max_steps: 5 });
    const ran = item(r, "sandbox_results");
    assert.equal(ran.results[0].stdout, "42\n");
    assert.equal(ran.status, "completed");
    assert.equal(r.usage.tool_calls_details.sandbox.invocation, 1);
    assert.match(r.output_text, /42/);
  },
  async stream() {
    const kinds = [];
    let said = "";
    for await (const event of await client.responses.create({ model: "clever", input: "run print(6 * 7)", tools: sandbox, stream: true })) {
      kinds.push(event.type);
      if (event.type === "response.output_text.delta") said += event.delta;
    }
    assert.equal(kinds[0], "response.created");
    assert.equal(kinds.at(-1), "response.completed");
    assert.match(said, /42/);
  },
  async background() {
    const r = await ended(await client.responses.create({ model: "clever", input: "run print(6 * 7)", tools: sandbox, background: true }));
    assert.equal(r.status, "completed");
    const slow = await client.responses.create({ model: "clever", input: "slow", background: true });
    assert.equal((await client.responses.cancel(slow.id)).response_id, slow.id);
    assert.equal((await ended(slow)).status, "cancelled");
  },
  async functions() {
    const r = await client.responses.create({ model: "clever", input: "weather", tools: [weather] });
    const call = item(r, "function_call");
    const end = await client.responses.create({
      model: "clever", tools: [weather], previous_response_id: r.id, input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
    });
    assert.match(end.output_text, /rain/);
  },
  async conversation() {
    const first = await client.responses.create({ model: "clever", input: "run open('f', 'w').write('kept')", tools: sandbox });
    const second = await client.responses.create({ model: "clever", input: "run print(open('f').read())", tools: sandbox, previous_response_id: first.id });
    assert.match(second.output_text, /kept/);
  },
  async files() {
    const r = await client.responses.create({ model: "clever", input: "share", tools: sandbox });
    const shared = item(r, "share_file");
    assert.equal(shared.filename, "made.csv");
    const listed = await client.responses.files.list(r.id);
    assert.deepEqual(listed.data.map((f) => [f.id, f.filename, f.bytes]), [[shared.file_id, "made.csv", 4]]);
    const content = await client.responses.files.content(shared.file_id, { response_id: r.id });
    assert.equal(await content.text(), "a,b\n");
  },
  async refused() {
    await assert.rejects(client.responses.create({ model: "none", input: "x" }), (e) => e instanceof Perplexity.NotFoundError && /no model/.test(e.message));
    const wrong = new Perplexity({ baseURL: process.env.ATOLL_URL, apiKey: "sk-atoll-wrong" });
    await assert.rejects(wrong.responses.create({ model: "clever", input: "x" }), Perplexity.AuthenticationError);
  },
};
for (const [name, part] of Object.entries(parts)) {
  await part();
  console.log(name);
}
