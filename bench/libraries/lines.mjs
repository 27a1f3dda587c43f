// Prints how many milliseconds the library needs for a stream of many lines, and how many it had.
import { Atoll } from "../../sdk/typescript/dist/src/index.js";

const client = new Atoll();
await client.execute("1");
let lines = 0;
const begun = performance.now();
for await (const e of client.executions.stream({ code: process.argv[2] })) if (e.type === "output") lines += e.data.split("\n").length - 1;
console.log(performance.now() - begun, lines);
