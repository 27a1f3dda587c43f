import { computed, exec, fetchData } from "@atoll-run/atoll/reactive";
import { NAME, pattern, UI } from "@atoll-run/atoll/pattern";

const analyze = `
import collections, csv, json
sums = collections.Counter()
for row in csv.DictReader(open('data.csv')):
    sums[row['month']] += int(row['revenue'])
print(json.dumps(sums))
`;

const draw = `
import json
sums = json.load(open('sums.json'))
top = max(sums.values())
bars = ''.join(f'<rect x="{70 * i}" y="{120 - 100 * n // top}" width="60" height="{100 * n // top}" fill="teal"/>'
               f'<text x="{70 * i}" y="135" font-size="12">{month}</text>' for i, (month, n) in enumerate(sums.items()))
open('/tmp/chart.svg', 'w').write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{70 * len(sums)}" height="140">{bars}</svg>')
`;

export default pattern<{ csvUrl: string }>(({ csvUrl }) => {
  // Stage 1: fetch the CSV
  const csv = fetchData<string>({ url: csvUrl, mode: "text" });

  // Stage 2: sums by month. It runs once there is a CSV, and in the image of the environment.
  const analysis = exec({
    command: "python3 analyze.py",
    files: { "analyze.py": analyze, "data.csv": computed(() => csv.result as string) },
  });

  // Stage 3: a chart of the sums
  const chart = exec({
    command: "python3 draw.py",
    files: { "draw.py": draw, "sums.json": computed(() => analysis.result?.stdout as string), "/tmp/chart.svg": "text" },
  });
  const svg = computed(() => chart.result?.files?.["/tmp/chart.svg"] as string | undefined);

  return {
    [NAME]: "CSV Analyzer",
    [UI]: (
      <div>
        {csv.pending && <div>Fetching CSV <ct-loader /></div>}
        {analysis.pending && <div>Analyzing <ct-loader /></div>}
        {chart.pending && <div>Charting <ct-loader /></div>}
        {analysis.result && <pre>{analysis.result.stdout}</pre>}
        {/* An image, and not a part of the page: what a program wrote must not run here. */}
        {svg.get() && <img alt="revenue by month" src={`data:image/svg+xml,${encodeURIComponent(svg.get()!)}`} />}
        {chart.result?.stderr && <pre class="error">{chart.result.stderr}</pre>}
      </div>
    ),
  };
});
