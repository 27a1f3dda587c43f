import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

declare const process: { env: Record<string, string> };

const client = createClient<paths>({ baseUrl: process.env.ATOLL_URL, headers: { Authorization: `Bearer ${process.env.ATOLL_API_KEY}` } });
const run = await client.POST("/v1/sandbox/execute", { body: { code: "print(6 * 7)", language: "python" } });
if (typeof run.data !== "object" || !("stdout" in run.data)) throw new Error(JSON.stringify(run.error));
const none = await client.GET("/v1/executions/{trace_id}", { params: { path: { trace_id: "trc_none" } } });
console.log(run.data.stdout.trim(), none.error?.error);
