// What the library does where there is a token and no Node.js: in a page, or in a worker of one.
import { Atoll } from "@atoll-run/atoll";
import { computed, configure, exec, scope, settled, Writable } from "@atoll-run/atoll/reactive";

export interface Place {
  baseUrl: string;
  apiKey: string;
}

/** use does a little of everything, and tells what came of it. */
export async function use({ baseUrl, apiKey }: Place): Promise<Record<string, unknown>> {
  const client = new Atoll({ baseUrl, apiKey });
  const salt = Math.random().toString(36).slice(2); // no other run has the same inputs

  let streamed = "";
  for await (const e of client.executions.stream({ language: "bash", code: "for i in 1 2 3; do echo $i; done" })) {
    if (e.type === "output") streamed += e.data;
  }

  const box = client.sandbox("platform-" + salt);
  await box.files.write("in.txt", "hello\n");
  const ran = await box.run("cat in.txt; exit 3");
  const read = await box.files.readText("in.txt");
  await box.delete();

  const stop = new AbortController();
  const endless = client.executions.stream({ language: "bash", code: "echo begun; sleep 60" }, { signal: stop.signal });
  let thrown = "";
  try {
    for await (const e of endless) if (e.type === "output") stop.abort();
  } catch (e) {
    thrown = (e as Error).name;
  }
  await client.close(); // the cancelling has been done
  const cancelled = (await client.executions.wait(endless.traceId)).status;

  configure({ client });
  const n = Writable.of(6);
  const at = scope(() => exec({ command: computed(() => `echo ${salt} $((${n.get()} * 7))`) }));
  const states = [at.value.pending];
  const first = (await settled(at.value)).stdout;
  n.set(7);
  states.push(at.value.pending);
  const second = (await settled(at.value)).stdout;
  at.dispose();

  const refused = await client.agents.list({}).all(1).then(
    () => "allowed",
    (e: { code?: string }) => e.code,
  );
  return { streamed, ran, read, thrown, cancelled, states, reactive: [first, second].map((s) => s.replace(salt, "").trim()), refused };
}
