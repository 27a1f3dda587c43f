// Drives what sessions are made from, and their threads, by Anthropic's client for TypeScript, as it is published.
import assert from "node:assert/strict";
import Anthropic, { toFile } from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: process.env.ATOLL_OWNER, baseURL: process.env.ATOLL_URL, maxRetries: 0 });
const { agents, environments, sessions, skills, files, vaults } = client.beta;
const model = process.env.ATOLL_MODEL;

async function all(pages) {
  const out = [];
  for await (const one of pages) out.push(one);
  return out;
}

const research = await agents.create({ name: "Research", model, system: "You find facts.", metadata: { team: "a" } });
const second = await agents.update(research.id, { version: 1, description: "Finds facts.", metadata: { team: null } });
assert.equal(second.version, 2);
assert.deepEqual(second.metadata, {});
await assert.rejects(agents.update(research.id, { version: 1, name: "Late" }), Anthropic.ConflictError);
assert.equal((await agents.retrieve(research.id, { version: 1 })).description, null);
assert.deepEqual((await all(agents.versions.list(research.id, { limit: 1 }))).map((a) => a.version), [2, 1]);
assert.ok((await all(agents.list({ limit: 1 }))).some((a) => a.id === research.id));
const gone = await agents.create({ name: "Gone", model });
assert.notEqual((await agents.archive(gone.id)).archived_at, null);
console.log("agents");

const env = await environments.create({ name: "from typescript", config: { type: "cloud", networking: { type: "limited", allowed_hosts: ["api.example.com"] } } });
assert.deepEqual(env.config.networking.allowed_hosts, ["api.example.com"]);
const open = await environments.update(env.id, { config: { type: "cloud", networking: { type: "limited", allow_package_managers: true } } });
assert.deepEqual([open.config.networking.allow_package_managers, open.config.networking.allowed_hosts], [true, ["api.example.com"]]);
assert.deepEqual(await environments.retrieve(env.id), open);
assert.ok((await all(environments.list())).some((e) => e.id === env.id));
console.log("environments");

const folder = async (text) => [await toFile(Buffer.from(`---\nname: letters\ndescription: ${text}\n---\nBe kind.\n`), "letters/SKILL.md", { type: "text/markdown" })];
const skill = await skills.create({ display_name: "Letters", files: await folder("Writes letters.") });
const version = await skills.versions.create(skill.id, { files: await folder("Writes better letters.") });
assert.equal((await skills.versions.retrieve("latest", { skill_id: skill.id })).id, version.id);
assert.deepEqual((await all(skills.versions.list(skill.id, { limit: 1 }))).map((v) => v.id), [version.id, skill.latest_version_id]);
assert.ok((await (await skills.versions.download(version.id, { skill_id: skill.id })).arrayBuffer()).byteLength > 0);
assert.ok((await all(skills.list())).some((s) => s.id === skill.id));
console.log("skills");

const file = await files.upload({ file: await toFile(Buffer.from("a,b\n1,2\n"), "table.csv", { type: "text/csv" }) });
assert.equal(file.size_bytes, 8);
assert.equal(await (await files.download(file.id)).text(), "a,b\n1,2\n");
assert.deepEqual(await files.retrieveMetadata(file.id), file);
assert.ok((await all(files.list({ limit: 1 }))).some((f) => f.id === file.id));
console.log("files");

const vault = await vaults.create({ display_name: "Carol" });
const credential = await vaults.credentials.create(vault.id, { auth: { type: "static_bearer", mcp_server_url: "https://mcp.example.com/shop", token: "bearer-of-carol" } });
assert.ok(!JSON.stringify(credential).includes("bearer-of-carol"));
assert.deepEqual((await all(vaults.credentials.list(vault.id))).map((c) => c.id), [credential.id]);
assert.equal((await vaults.credentials.update(credential.id, { vault_id: vault.id, display_name: "Shop" })).display_name, "Shop");
console.log("vaults");

const writer = await agents.create({ name: "Writer", model, skills: [{ type: "custom", skill_id: skill.id, version: "latest" }] });
const lead = await agents.create({ name: "Lead of two", model, multiagent: { type: "coordinator", agents: [research.id, { type: "agent", id: writer.id, version: 1 }] } });
assert.deepEqual(lead.multiagent.agents.map((a) => [a.id, a.version]), [[research.id, 2], [writer.id, 1]]);
const session = await sessions.create({ agent: lead.id, environment_id: env.id, vault_ids: [vault.id] });
const stream = await sessions.events.stream(session.id);
await sessions.events.send(session.id, { events: [{ type: "user.message", content: [{ type: "text", text: process.env.ATOLL_ASK }] }] });
const seen = [];
for await (const e of stream) {
  seen.push(e);
  if (e.type === "session.status_idle") break;
}
assert.equal(seen.filter((e) => e.type === "session.thread_created").length, 2, JSON.stringify(seen));
const [primary, ...others] = await all(sessions.threads.list(session.id, { limit: 1 }));
assert.deepEqual(others.map((t) => [t.agent.name, t.parent_thread_id, t.status]).sort(), [["Research", primary.id, "idle"], ["Writer", primary.id, "idle"]]);
const [facts] = others.filter((t) => t.agent.name === "Research");
assert.deepEqual(await sessions.threads.retrieve(facts.id, { session_id: session.id }), facts);
const events = await all(sessions.threads.events.list(facts.id, { session_id: session.id, limit: 2 }));
assert.equal(events.at(-1).type, "session.thread_status_idle");
const again = [];
for await (const e of await sessions.threads.events.stream(facts.id, { session_id: session.id }, { headers: { "Last-Event-ID": events[0].id } })) again.push(e);
assert.deepEqual(again, events.slice(1));
assert.notEqual((await sessions.threads.archive(facts.id, { session_id: session.id })).archived_at, null);
console.log("threads");

assert.equal((await sessions.archive(session.id)).status, "terminated");
assert.equal((await sessions.delete(session.id)).type, "session_deleted");
assert.equal((await vaults.credentials.delete(credential.id, { vault_id: vault.id })).type, "vault_credential_deleted");
assert.equal((await vaults.delete(vault.id)).type, "vault_deleted");
assert.equal((await files.delete(file.id)).type, "file_deleted");
await assert.rejects(files.retrieveMetadata(file.id), Anthropic.NotFoundError);
assert.equal((await environments.delete(env.id)).type, "environment_deleted");
await assert.rejects(agents.create({ name: "x", model, multiagent: { type: "coordinator", agents: [{ type: "self" }] } }), Anthropic.BadRequestError);
console.log("end");
