package docs

import (
	"regexp"
	"strings"
)

// changing are the parts of output that differ from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\btrc_[0-9a-z]+`), "trc_ID"},
	{regexp.MustCompile(`\b(key|ten|env|exe|con|grt)_[0-9a-f]+`), "${1}_ID"},
	{regexp.MustCompile(`\b(sb|snap|p)-[0-9a-f]{8,}`), "$1-ID"},
	{regexp.MustCompile(`\bsk-atoll-[0-9a-f]+`), "sk-atoll-KEY"},
	{regexp.MustCompile(`\b(\d{1,5})-[0-9a-f]{16}-[a-z2-7]{26}\b`), "$1-PREVIEW"},
	{regexp.MustCompile(`"duration_ms":\d+`), `"duration_ms":N`},
	{regexp.MustCompile(`"start":"(warm|cold)"`), `"start":"…"`},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|s|B|KiB|MiB|GiB|KB|MB|GB)\b`), "N$2"},
	{regexp.MustCompile(`\bPID \d+`), "PID N"},
	{regexp.MustCompile(`\b\d+ {2,}TIME`), "N  TIME"},
	{regexp.MustCompile(` {2,}`), "  "},
}

// steady is a line with what changes from run to run replaced.
func steady(line string) string {
	for _, c := range changing {
		line = c.pattern.ReplaceAllString(line, c.as)
	}
	return strings.TrimRight(line, " \r")
}

// same reports whether output is what a page shows of it. A line "…" stands for any
// number of lines, "…" in a line for any text.
func same(shown []string, output string) bool {
	var want strings.Builder
	want.WriteString(`^`)
	for _, line := range trimmed(shown) {
		if strings.TrimSpace(line) == "…" {
			want.WriteString(`(?s:.*?)`)
			continue
		}
		parts := strings.Split(steady(line), "…")
		for i, part := range parts {
			if i > 0 {
				want.WriteString(`.*`)
			}
			want.WriteString(regexp.QuoteMeta(part))
		}
		want.WriteString(`\n?`)
	}
	want.WriteString(`\s*$`)
	var got []string
	for line := range strings.Lines(output) {
		got = append(got, steady(strings.TrimSuffix(line, "\n")))
	}
	return regexp.MustCompile(want.String()).MatchString(strings.Join(trimmed(got), "\n"))
}

// trimmed is lines without empty ones at the ends.
func trimmed(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
