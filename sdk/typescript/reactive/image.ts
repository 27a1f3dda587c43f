import { AtollError, type Atoll, type ExecResult as CommandResult } from "../src/index.js";
import { unique } from "../src/transport.js";
import { current } from "./client.js";
import { hash, quote, read, script, type ExecInputs, type ExecResult } from "./exec.js";

/** How long the result of a run with an image can be found again, in milliseconds. */
const kept = 10 * 60_000;

/** Where a run's record is in its sandbox. */
const record = "/tmp/.exec";

/** How often a run is begun anew whose sandbox another page has ended. */
const maxAttempts = 3;

/**
 * runIn runs commands with an image. An execution has that of its key's environment, so this
 * takes a named sandbox, whose name is the inputs' hash: pages with equal inputs meet in it. The
 * first one runs the commands, and the others wait for what they come to.
 */
export async function runIn(client: Atoll, inputs: ExecInputs, signal: AbortSignal): Promise<ExecResult> {
  const key = await hash(JSON.stringify(inputs));
  const name = "x-" + (key.slice(-40) || unique());
  const session = current().session;
  const at = { session, signal };
  const { stdout, stderr, exit_code } = await commands(client, name, inputs, at);
  const files = await read(inputs, (path) => client.sandboxes.files.read(name, path, at).catch(notThere));
  return { stdout, stderr, exit_code, ...files };
}

/** notThere makes a 404 nothing. */
function notThere(e: unknown): undefined {
  if (!(e instanceof AtollError) || e.code !== "not_found") throw e;
}

async function commands(client: Atoll, name: string, inputs: ExecInputs, at: { session: string | undefined; signal: AbortSignal }): Promise<CommandResult> {
  // Who has the lock runs the commands, unless there is a record. One that ends early gives it up.
  const command = `mkdir -p ${record} && exec 9> ${record}/lock && flock 9 || exit
if [ ! -e ${record}/code ]; then
  sh -c ${quote(script(inputs, ""))} > ${record}/stdout 2> ${record}/stderr < /dev/null 9>&-
  echo $? > ${record}/code.new && mv ${record}/code.new ${record}/code
fi
cat ${record}/stdout; cat ${record}/stderr >&2; exit $(cat ${record}/code)`;
  const limit = inputs.timeout_ms === undefined ? {} : { timeout_ms: inputs.timeout_ms };
  for (let attempt = 1; ; attempt++) {
    try {
      await client.sandboxes.create({ name, image: inputs.image, session: at.session ?? null, timeout_ms: kept, sleep_after_ms: 30_000 }, { signal: at.signal });
      const r = await client.sandboxes.exec(name, { command, ...limit }, at);
      if (r.timed_out) throw new AtollError("gateway_timeout", `the commands took longer than ${inputs.timeout_ms} ms`);
      if (r.reason) throw new AtollError("execution_failed", r.reason);
      return r;
    } catch (e) {
      if (at.signal.aborted) {
        void tidy(client, name, at.session);
        throw e;
      }
      const ended = e instanceof AtollError && ["not_found", "stopped", "conflict"].includes(e.code);
      if (!ended || attempt >= maxAttempts) throw e;
    }
  }
}

/** tidy destroys a sandbox that no page runs anything in, once what this one ran has ended. */
async function tidy(client: Atoll, name: string, session: string | undefined): Promise<void> {
  try {
    await client.close();
    const free = await client.sandboxes.exec(name, `flock -w 5 ${record}/lock test ! -e ${record}/code`, { session });
    if (free.exit_code === 0) await client.sandboxes.delete(name, { session });
  } catch {
    // its time will be over
  }
}
