// An independent client of /mcp and of 'atoll mcp': the official one for
// TypeScript. It checks each output against the tool's schema by itself.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { ATOLL_URL, ATOLL_API_KEY, ATOLL_BINARY, ATOLL_DATA_DIR, ATOLL_IMAGE, PATH } = process.env;

const http = () => new StreamableHTTPClientTransport(new URL(ATOLL_URL + "/mcp"), {
  requestInit: { headers: { Authorization: "Bearer " + ATOLL_API_KEY } },
});
const stdio = (env) => new StdioClientTransport({ command: ATOLL_BINARY, args: ["mcp"], env: { PATH, ...env } });

async function converse(name, transport) {
  const client = new Client({ name: "independent", version: "1" });
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, "atoll");
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name).sort(), [
    "browse", "execute_code", "glob", "read_file", "sandbox_create", "sandbox_execute", "sandbox_list", "shell", "transfer", "write_file",
  ]);
  const call = async (tool, args, options) => {
    const result = await client.callTool({ name: tool, arguments: args }, undefined, options);
    assert.ok(result.structuredContent || result.isError, tool);
    return result;
  };
  const done = async (tool, args) => {
    const result = await call(tool, args);
    assert.ok(!result.isError, tool + ": " + JSON.stringify(result.content));
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
  };
  assert.equal((await done("shell", { command: "echo $((6*7)); id -u" })).stdout, "42\n1000\n");
  assert.equal((await done("write_file", { path: "d/a 'b\n.txt", content: "ü\n" })).size, 3);
  assert.equal((await done("read_file", { path: "d/a 'b\n.txt" })).content, "ü\n");
  assert.deepEqual((await done("glob", { pattern: "**/*.txt" })).files, ["d/a 'b\n.txt"]);
  assert.deepEqual(await done("sandbox_create", { sandbox: "two" }), { sandbox: "two", created: true });
  assert.equal((await done("transfer", { from_sandbox: "default", from_path: "/home/user/d", to_sandbox: "two", to_path: "/home/user/e", recursive: true })).bytes, 3);
  assert.equal((await done("shell", { sandbox: "two", command: "ls e | wc -l" })).stdout, "2\n");
  assert.deepEqual((await done("sandbox_list", {})).sandboxes.map((s) => s.name).sort(), ["default", "two"]);
  assert.equal((await done("sandbox_execute", { code: "print(1+1)" })).stdout, "2\n");
  assert.equal((await call("execute_code", { code: "print(2+1)" })).structuredContent.exit_code, 0);
  assert.match((await done("browse", { port: 8000 })).url, /^http:\/\/8000-/);

  const failed = await call("shell", { command: "exit 3" });
  assert.ok(failed.isError && failed.structuredContent.exit_code === 3);
  for (const [args, says] of [[{}, /command is required/], [{ command: 1 }, /command must be a string/], [{ command: "true", sub_paths: [] }, /unknown field "sub_paths"/]]) {
    const refused = await call("shell", args);
    assert.ok(refused.isError);
    assert.match(refused.content[0].text, says);
  }
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), /unknown tool/);

  let told = 0;
  const stop = new AbortController();
  await assert.rejects(call("shell", { command: "echo $$ > pid; exec sleep 1000", timeout_ms: 600000 }, {
    signal: stop.signal, onprogress: () => { if (++told === 2) stop.abort(); },
  }));
  assert.ok(told >= 2);
  assert.equal((await done("shell", { command: "for i in $(seq 100); do kill -0 $(cat pid) 2>/dev/null || { echo gone; exit; }; sleep 0.1; done" })).stdout, "gone\n");
  if (transport.terminateSession) await transport.terminateSession();
  await client.close();
  console.log(name);
}

await converse("http", http());
await converse("stdio, on a server", stdio({ ATOLL_BASE_URL: ATOLL_URL, ATOLL_API_KEY: ATOLL_API_KEY }));
await converse("stdio, by itself", stdio({ ATOLL_DATA_DIR, ATOLL_IMAGE }));
