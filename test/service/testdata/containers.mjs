// Drives containers and code_interpreter with the client for JavaScript that OpenAI
// publishes.
import assert from "node:assert/strict";
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ apiKey: process.env.ATOLL_KEY, baseURL: process.env.ATOLL_URL + "/v1", maxRetries: 0 });
const container = await client.containers.create({ name: "js" });
const csv = await client.containers.files.create(container.id, { file: await toFile(Buffer.from("a,b\n1,2\n"), "data.csv") });
assert.equal(csv.path, "/home/user/data.csv");
const tools = [{ type: "code_interpreter", container: container.id }];
const response = await client.responses.create({
  model: "scripted", input: "compute print(open('data.csv').read()); open('made', 'w').write('made')", tools, include: ["code_interpreter_call.outputs"],
});
const call = response.output.find((item) => item.type === "code_interpreter_call");
assert.deepEqual(call.outputs, [{ type: "logs", logs: "a,b\n1,2\n\n4\n" }]);
const names = [];
for await (const file of client.containers.files.list(container.id, { limit: 1 })) names.push(file.path);
assert.deepEqual(names.sort(), ["/home/user/data.csv", "/home/user/made"]);
const content = await client.containers.files.content.retrieve(csv.id, { container_id: container.id });
assert.equal(await content.text(), "a,b\n1,2\n");
const kinds = [];
for await (const event of await client.responses.create({ model: "scripted", input: "compute print(1)", tools, stream: true })) kinds.push(event.type);
assert.ok(kinds.includes("response.code_interpreter_call.completed"));
await client.containers.files.delete(csv.id, { container_id: container.id });
await client.containers.delete(container.id);
assert.equal((await client.containers.retrieve(container.id)).status, "expired");
console.log("containers");
