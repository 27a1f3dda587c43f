// Drives sessions by Anthropic's client for TypeScript, as it is published.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: process.env.ATOLL_KEY, baseURL: process.env.ATOLL_URL, maxRetries: 0 });
const { agents, sessions } = client.beta;
const says = (text) => ({ type: "user.message", content: [{ type: "text", text }] });
const said = (e) => e.content.map((b) => b.text).join("");

// turn opens a stream, sends events, and returns those that come up to the end of the turn.
async function turn(session, events, params) {
  const seen = [];
  const stream = await sessions.events.stream(session.id, params);
  await sessions.events.send(session.id, { events });
  for await (const e of stream) {
    seen.push(e);
    if (e.type === "session.status_idle") break;
  }
  return seen;
}

const agent = await agents.create({
  name: "Asking", model: "scripted", tools: [
    { type: "agent_toolset_20260401", configs: [{ name: "bash", permission_policy: { type: "always_ask" } }] },
    { type: "custom", name: "get_weather", description: "Tells the weather.", input_schema: { type: "object", properties: {} } },
  ],
});
const session = await sessions.create({ agent: { type: "agent", id: agent.id, version: 1 }, environment_id: "main", title: "One", metadata: { team: "a" } });
assert.equal((await sessions.update(session.id, { title: "Two", metadata: { team: null } })).title, "Two");
assert.deepEqual((await sessions.retrieve(session.id)).metadata, {});
const found = [];
for await (const s of sessions.list({ agent_id: agent.id, statuses: ["idle"] })) found.push(s.id);
assert.deepEqual(found, [session.id]);
console.log("sessions");

let seen = await turn(session, [says("say one two")], { event_deltas: ["agent.message"] });
const answer = seen.find((e) => e.type === "agent.message");
assert.equal(said(answer), "one two");
assert.equal(seen.filter((e) => e.type === "event_delta").map((e) => e.delta.content.text).join(""), "one two");
assert.equal(seen.find((e) => e.type === "event_start").event.id, answer.id);
const listed = [];
for await (const e of sessions.events.list(session.id, { limit: 2, types: ["user.message", "agent.message", "session.status_idle"] })) listed.push(e.type);
assert.deepEqual(listed, ["user.message", "agent.message", "session.status_idle"]);
const again = await sessions.events.stream(session.id, {}, { headers: { "Last-Event-ID": answer.id } });
for await (const e of again) {
  assert.equal(e.type, "span.model_request_end");
  break;
}
console.log("events");

seen = await turn(session, [says("run print(6 * 7)")]);
const [waits] = seen.at(-1).stop_reason.event_ids;
assert.equal(seen.find((e) => e.id === waits).evaluated_permission, "ask");
seen = await turn(session, [{ type: "user.tool_confirmation", tool_use_id: waits, result: "allow" }]);
assert.match(said(seen.find((e) => e.type === "agent.tool_result")), /42/);
seen = await turn(session, [says("weather")]);
const use = seen.find((e) => e.type === "agent.custom_tool_use");
seen = await turn(session, [{ type: "user.custom_tool_result", custom_tool_use_id: use.id, content: [{ type: "text", text: "snow" }] }]);
assert.equal(said(seen.find((e) => e.type === "agent.message")), "The result is snow");
console.log("tools");

await sessions.events.send(session.id, { events: [says("slow")] });
seen = await turn(session, [{ type: "user.interrupt" }]);
assert.ok(seen.some((e) => e.type === "user.interrupt") && seen.at(-1).stop_reason.type === "end_turn", seen);
await assert.rejects(sessions.events.send(session.id, { events: [{ type: "user.define_outcome", description: "x", rubric: { type: "file", file_id: "file_1" } }] }), Anthropic.BadRequestError);
assert.equal((await sessions.archive(session.id)).status, "terminated");
assert.equal((await sessions.delete(session.id)).type, "session_deleted");
console.log("end");
