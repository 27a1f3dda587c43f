import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Atoll, APIError, ConnectionError, ConflictError, RateLimitError, TimeoutError, UnavailableError } from "../src/index.js";

/** answering serves requests one by one with the handlers, and fails the test for more. */
async function answering(handlers: ((req: IncomingMessage, res: ServerResponse, body: string) => void)[], use: (c: Atoll, seen: IncomingMessage[], baseUrl: string) => Promise<void>): Promise<void> {
  const seen: IncomingMessage[] = [];
  const server: Server = createServer((req, res) => {
    let body = "";
    req.on("data", (d: Buffer) => (body += d.toString()));
    req.on("end", () => {
      const handle = handlers[seen.push(req) - 1];
      if (handle) handle(req, res, body);
      else res.writeHead(500).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await use(new Atoll({ baseUrl, apiKey: "k" }), seen, baseUrl);
    assert.equal(seen.length, handlers.length);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) => (_: IncomingMessage, res: ServerResponse) =>
  void res.writeHead(status, { "content-type": "application/json", "x-trace-id": "trc_x", ...headers }).end(JSON.stringify(body));
const drop = (req: IncomingMessage) => void req.socket.destroy();
const line = (e: object) => JSON.stringify(e) + "\n";

test("an execution is sent again with the same key, whatever happened", async () => {
  await answering([drop, json(502, { error: "bad_gateway", message: "m" }), json(200, { stdout: "1" })], async (c, seen) => {
    assert.equal((await c.execute("print(1)")).stdout, "1");
    const keys = seen.map((r) => r.headers["idempotency-key"]);
    assert.ok(keys[0]);
    assert.equal(new Set(keys).size, 1);
  });
});

test("what makes something is sent again with the same key, by the same token", async () => {
  const served = json(409, { error: "conflict", message: "m" }, { "retry-after": "0" });
  await answering([drop, served, json(201, { id: "agent_1" })], async (_, seen, baseUrl) => {
    let calls = 0;
    const changing = new Atoll({ baseUrl, apiKey: () => `t${++calls}` });
    assert.equal((await changing.agents.create({ name: "a", model: { name: "m" } })).id, "agent_1");
    assert.equal(new Set(seen.map((r) => r.headers["idempotency-key"])).size, 1);
    assert.equal(new Set(seen.map((r) => r.headers.authorization)).size, 1);
  });
  await answering([json(409, { error: "conflict", message: "m" })], async (c) => {
    await assert.rejects(c.agents.create({ name: "a", model: { name: "m" } }), ConflictError);
  });
});

test("what cannot be repeated, or ends with its caller, is sent once", async () => {
  await answering([drop], async (c) => {
    await assert.rejects(c.responses.create({ input: "x" }), ConnectionError);
  });
  await answering([json(502, { error: "bad_gateway", message: "m" })], async (c) => {
    await assert.rejects(c.agents.archive("a"), APIError);
  });
  await answering([drop, json(200, { id: "resp_1" })], async (c, seen) => {
    assert.equal((await c.responses.create({ input: "x" }, { idempotencyKey: "k" })).id, "resp_1");
    assert.equal(seen[1]!.headers["idempotency-key"], "k");
  });
});

test("what was refused is sent again when the server says so", async () => {
  const busy = json(503, { error: "service_unavailable", message: "m" }, { "retry-after": "0" });
  await answering([busy, busy, json(201, { id: "agent_1" })], async (c) => {
    assert.equal((await c.agents.create({ name: "a", model: { name: "m" } })).id, "agent_1");
  });
  await answering([busy], async (c) => {
    await assert.rejects(c.agents.get("a", { maxRetries: 0 }), UnavailableError);
  });
  // without a time there is nothing to wait for
  await answering([json(429, { error: "rate_limited", message: "m", dimension: "concurrency" })], async (c) => {
    await assert.rejects(c.agents.get("a"), (e) => e instanceof RateLimitError && e.dimension === "concurrency" && e.requestId === "trc_x" && e.advice !== undefined);
  });
});

test("a deletion that was done by a lost try has been done", async () => {
  await answering([drop, json(404, { error: "not_found", message: "m" })], async (c) => {
    assert.equal(await c.threads.delete("t"), undefined);
  });
});

test("errors of both forms have code, request id and reason", async () => {
  await answering([json(409, { error: { code: "conflict", message: "busy", type: "invalid_request_error" } })], async (c) => {
    await assert.rejects(c.responses.create({ input: "x" }), (e) => e instanceof ConflictError && e.code === "conflict" && e.reason === "busy" && e.requestId === "trc_x");
  });
  await answering([(_, res) => void res.writeHead(413).end("<html>too large</html>")], async (c) => {
    await assert.rejects(c.agents.get("a"), (e) => e instanceof APIError && e.code === "http_413");
  });
});

test("time-outs and aborts", async () => {
  const never = () => undefined;
  const begun = (_: IncomingMessage, res: ServerResponse) => void res.writeHead(200).write("{");
  for (const handle of [never, begun]) {
    // A busy machine may need more time for the request to arrive.
    for (let timeout = 500, arrived = false; !arrived && timeout < 20_000; timeout *= 2) {
      const handlers: (typeof handle)[] = [handle];
      await answering(handlers, async (c, seen) => {
        await assert.rejects(c.agents.get("a", { timeout }), TimeoutError);
        arrived = seen.length > 0;
        if (!arrived && timeout < 10_000) handlers.pop();
      });
    }
  }
  await answering([], async (c) => {
    await assert.rejects(c.agents.get("a", { signal: AbortSignal.abort() }), { name: "AbortError" });
  });
});

test("an aborted execution is found by its key and cancelled", async () => {
  const stop = new AbortController();
  let first = "";
  const handlers = [
    (req: IncomingMessage) => ((first = String(req.headers["idempotency-key"])), stop.abort()),
    (req: IncomingMessage, res: ServerResponse) => {
      assert.equal(req.headers["idempotency-key"], first);
      res.writeHead(200, { "content-type": "application/x-ndjson", "x-trace-id": "trc_1" }).flushHeaders();
    },
    (req: IncomingMessage, res: ServerResponse) => {
      assert.equal(req.url, "/v1/executions/trc_1/cancel");
      res.writeHead(200, { "content-type": "application/json" }).end("{}");
    },
  ];
  await answering(handlers, async (c) => {
    await assert.rejects(c.execute("while True: pass", { signal: stop.signal }), { name: "AbortError" });
    await c.close();
  });
});

test("a stream goes on behind the last event that was whole", async () => {
  const head = { "content-type": "application/x-ndjson", "x-trace-id": "trc_1" };
  const begin = (_: IncomingMessage, res: ServerResponse) => {
    res.writeHead(200, head);
    res.write(line({ type: "status", seq: 1 }) + line({ type: "output", data: "a", seq: 2 }) + '{"type":"output","data":"b', () => res.destroy());
  };
  const rest = (req: IncomingMessage, res: ServerResponse) => {
    assert.equal(req.url, "/v1/executions/trc_1/output?after=2");
    res.writeHead(200, head).end(line({ type: "output", data: "b", seq: 3 }) + line({ type: "result", seq: 4, result: { stdout: "ab" } }));
  };
  await answering([begin, drop, rest], async (c) => {
    const seqs: number[] = [];
    for await (const e of c.executions.stream({ code: "x" })) seqs.push(e.seq);
    assert.deepEqual(seqs, [1, 2, 3, 4]);
  });
  await answering([begin], async (c) => {
    await assert.rejects(c.executions.stream({ code: "x" }, { reconnect: false }).result(), ConnectionError);
  });
});

test("events that came together are given one by one", async () => {
  const head = { "content-type": "application/x-ndjson", "x-trace-id": "trc_1" };
  const all = [1, 2, 3].map((seq) => line({ type: "output", data: "a", seq })).join("") + line({ type: "result", seq: 4, result: { stdout: "" } });
  const together = (_: IncomingMessage, res: ServerResponse) => void res.writeHead(200, head).end(all);
  const cancelled = json(200, {});
  const stop = new AbortController();
  await answering([together, cancelled], async (c, seen) => {
    const seqs: number[] = [];
    const reading = async () => {
      for await (const e of c.executions.stream({ code: "x" }, { signal: stop.signal })) {
        if (seqs.push(e.seq) === 2) stop.abort();
      }
    };
    await assert.rejects(reading(), { name: "AbortError" }); // although the rest was there
    await c.close();
    assert.deepEqual(seqs, [1, 2]);
    assert.equal(seen[1]!.url, "/v1/executions/trc_1/cancel");
  });
  await answering([together], async (c) => {
    const events = c.executions.stream({ code: "x" })[Symbol.asyncIterator]();
    const asked = await Promise.all([1, 2, 3, 4, 5].map(() => events.next()));
    assert.deepEqual(asked.map((r) => (r.done ? 0 : r.value.seq)), [1, 2, 3, 4, 0]);
  });
  await answering([together], async (c) => {
    for await (const e of c.executions.stream({ code: "x" })) if (e.seq === 2) break;
    await c.close(); // leaving the loop cancels nothing
  });
  const broken = (_: IncomingMessage, res: ServerResponse) => void res.writeHead(200, head).end(line({ type: "output", data: "a", seq: 1 }) + "{\n");
  await answering([broken], async (c) => {
    const seqs: number[] = [];
    const reading = async () => {
      for await (const e of c.executions.stream({ code: "x" }, { reconnect: false })) seqs.push(e.seq);
    };
    await assert.rejects(reading(), ConnectionError);
    assert.deepEqual(seqs, [1]); // what came before what cannot be read
  });
});

test("a stream that is silent for too long is taken up again", async () => {
  const head = { "content-type": "application/x-ndjson", "x-trace-id": "trc_1" };
  const silent = (_: IncomingMessage, res: ServerResponse) => void res.writeHead(200, head).write(line({ type: "status", seq: 1 }));
  const rest = (_: IncomingMessage, res: ServerResponse) => void res.writeHead(200, head).end(line({ type: "result", seq: 2, result: { stdout: "" } }));
  const handlers = [silent, rest, rest, rest]; // on a busy machine, the rest may be late as well
  await answering(handlers, async (c, seen) => {
    assert.equal((await c.executions.stream({ code: "x" }, { idleTimeout: 500 }).result()).stdout, "");
    assert.ok(seen.length > 1);
    handlers.length = seen.length;
  });
});

test("a key is not taken to another host", async () => {
  await answering([(_, res) => void res.writeHead(307, { location: "http://127.0.0.1:1/" }).end()], async (c) => {
    await assert.rejects(c.agents.get("a"), (e) => e instanceof APIError && e.status === 307);
  });
  await answering([], async (c) => {
    assert.throws(() => void c.agents.get(".."), /no name/);
  });
});

test("an upload is read no faster than it is sent", async () => {
  let made = 0;
  async function* blocks(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 1000; i++) {
      made++;
      yield new Uint8Array(1 << 20);
    }
  }
  const server = createServer(() => undefined); // which reads nothing
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const c = new Atoll({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: "k" });
  await assert.rejects(c.threads.files.write("t", "f", blocks(), { timeout: 300 }), TimeoutError);
  assert.ok(made < 100, `${made} blocks were made`);
  server.closeAllConnections();
  server.close();
});
