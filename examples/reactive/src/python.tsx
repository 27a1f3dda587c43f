import { computed, exec } from "@atoll-run/atoll/reactive";
import { NAME, pattern, UI } from "@atoll-run/atoll/pattern";

export default pattern<{ code: string }>(({ code }) => {
  // Runs Python. Runs it again when code changes.
  const run = exec({
    command: "python3 main.py",
    files: { "main.py": code },
    image: "python:3.12",
  });
  const failed = computed(() => run.error?.message ?? run.result?.stderr);

  return {
    [NAME]: "Python Runner",
    [UI]: (
      <div>
        {run.pending && <ct-loader />}
        {run.result && <pre>{run.result.stdout}</pre>}
        {failed.get() && <pre class="error">{failed.get()}</pre>}
      </div>
    ),
  };
});
