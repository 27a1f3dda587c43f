package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app/attack"
	"github.com/atoll-run/atoll/internal/app/localserver"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		o        attack.Options
		code     int
		out, err string // parts of stdout and of the error
	}{
		{"list", attack.Options{List: true, Run: "escape/mount", Format: attack.Text}, exitOK, "CASE          SEVERITY  TRIES\nescape/mount  critical  ", ""},
		{"JSON list", attack.Options{List: true, Run: "escape/mount", Format: attack.JSON}, exitOK, `"group": "escape"`, ""},
		{"unknown case", attack.Options{Run: "none"}, exitUsage, "", `--run: no case matches "none"`},
		{"no server", attack.Options{Run: "escape/mount", URL: "http://127.0.0.1:1", Timeout: 1e9, Parallel: 1, Advice: localserver.Advice{Text: "start it", Refused: true}}, exitFailure, "", "connection refused; start it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			input, err := json.Marshal(c.o)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			code, err := run(t.Context(), bytes.NewReader(input), &out)
			if code != c.code || !strings.Contains(out.String(), c.out) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("code %d, %v:\n%s", code, err, out.String())
			}
		})
	}
}

func TestRunWithoutOptions(t *testing.T) {
	code, err := run(t.Context(), strings.NewReader(""), nil)
	if code != exitFailure || err == nil || !strings.Contains(err.Error(), "run 'atoll redteam'") {
		t.Errorf("code %d, %v", code, err)
	}
}
