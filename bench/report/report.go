package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is one run of the benchmarks.
type Report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	Quick   bool          `json:"quick"` // a tenth of the samples: for trying out, not for comparing
	Machine Machine       `json:"machine"`
	Rows    []Row         `json:"rows"`
}

var heads = []string{"case", "measured", "baseline", "ratio", "must reach", "aim for", "verdict"}

func (r Row) cells() []string {
	return []string{r.Case, r.measured(), r.baseline(), r.ratio(), r.bound(r.Must), r.bound(r.Aim), string(r.Verdict)}
}

// notes lists what a row says beyond its figures: counts and percentiles of its
// samples, its note, its error.
func (r Row) notes() string {
	var parts []string
	if s := r.Sample; s != nil {
		parts = append(parts, fmt.Sprintf("p50 %s, p95 %s, p99 %s ms of %d", number(s.P50), number(s.P95), number(s.P99), s.Count))
	}
	if s := r.BaselineSample; s != nil {
		parts = append(parts, fmt.Sprintf("baseline p50 %s, p95 %s, p99 %s ms of %d", number(s.P50), number(s.P95), number(s.P99), s.Count))
	}
	if r.Note != "" {
		parts = append(parts, r.Note)
	}
	if r.Err != "" {
		parts = append(parts, "failed: "+r.Err)
	}
	return strings.Join(parts, "; ")
}

// Text writes the table for a terminal.
func (r *Report) Text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(heads, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintln(tw, strings.Join(row.cells(), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Err != "" {
			fmt.Fprintf(w, "\n%s failed: %s\n", row.Case, row.Err)
		}
	}
	return nil
}

// Markdown writes the whole report.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks of %s\n\n", r.Started.Format(time.DateOnly))
	fmt.Fprintf(&b, "Started %s, took %s.", r.Started.Format(time.RFC3339), r.Took.Round(time.Second))
	if r.Quick {
		b.WriteString(" Quick: a tenth of the samples, for trying out and not for comparing.")
	}
	b.WriteString("\n\n| machine | |\n| --- | --- |\n")
	for _, kv := range r.Machine.pairs() {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(kv[0]), cell(kv[1]))
	}
	fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat(" --- |", len(heads)))
	for _, row := range r.Rows {
		cells := row.cells()
		for i := range cells {
			cells[i] = cell(cells[i])
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n## Samples and notes\n\n")
	for _, row := range r.Rows {
		if n := row.notes(); n != "" {
			fmt.Fprintf(&b, "- %s: %s\n", row.Case, n)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// Write puts the report into dir, as <date>-<machine>.md and .json, and returns
// the first one's path. What a run of the same day left there is replaced.
func (r *Report) Write(dir string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := r.Started.Format(time.DateOnly) + "-" + r.Machine.Short()
	if r.Quick {
		name += "-quick"
	}
	path = filepath.Join(dir, name+".md")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(r.Markdown(f), f.Close()); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(filepath.Join(dir, name+".json"), append(data, '\n'), 0o644)
}

// Count returns how many rows have a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, row := range r.Rows {
		if row.Verdict == v {
			n++
		}
	}
	return n
}
