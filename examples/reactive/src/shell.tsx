import { computed, handler, sandbox, Writable, type ExecResult } from "@atoll-run/atoll/reactive";
import { NAME, pattern, UI } from "@atoll-run/atoll/pattern";
import type { Command } from "./elements.js";

export default pattern<{ language: "python" | "node" }>(({ language }) => {
  const sb = sandbox({
    image: computed(() => (language.get() === "python" ? "python:3.12" : "node:22")),
  });

  const history = Writable.of<ExecResult[]>([]);

  const run = handler<Command>(({ command }) => {
    const result = sb.exec(command);
    history.push(result.result!); // which is there when the command has ended
  });

  return {
    [NAME]: "Shell",
    [UI]: (
      <div>
        {history.map((entry) => (
          <div>
            <pre>{entry.stdout ?? "…"}</pre>
            {entry.stderr && <pre class="stderr">{entry.stderr}</pre>}
          </div>
        ))}
        <common-input onsubmit={run} placeholder="$ " />
      </div>
    ),
    history,
    run,
  };
});
