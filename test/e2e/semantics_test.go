package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// semantic is a program and what comes of it.
type semantic struct {
	name   string
	code   string
	env    map[string]string
	stdout string // all of it
	stderr string // all of it; a pattern if it begins with "~"
	exit   int
	// alone says that the bare interpreter does something else, and why.
	alone string
}

// cold is a variable that means nothing to any program, but has a name that an
// interpreter might read as it starts: with it, no warm interpreter is used.
const cold = "OPENSSL_MEANS_NOTHING"

// checkSemantics runs each program in a warm interpreter, in one that is started
// for it, and without a sandbox: the same must come of it every time.
func checkSemantics(t *testing.T, language string, cases []semantic) {
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			p := atolltest.Program{Language: language, Code: c.code, Env: c.env}
			check(t, "warm", c, s.Run(t, p))

			p.Env = map[string]string{cold: "1"}
			for k, v := range c.env {
				p.Env[k] = v
			}
			check(t, "cold", c, s.Run(t, p))

			if c.alone == "" {
				p.Env = c.env
				check(t, "bare", c, atolltest.Bare(t, p))
			}
		})
	}
}

func check(t *testing.T, how string, c semantic, r *atolltest.Result) {
	t.Helper()
	if r.Status != http.StatusOK || r.ExitCode != c.exit || r.Success != (c.exit == 0) || r.Error != nil ||
		r.Stdout != c.stdout || !matches(c.stderr, r.Stderr) {
		t.Errorf("%s: want exit code %d\nstdout %q\nstderr %q\ngot %v", how, c.exit, c.stdout, c.stderr, r)
	}
}

// matches compares with a pattern that begins with "~", or for equality.
func matches(want, got string) bool {
	if pattern, ok := strings.CutPrefix(want, "~"); ok {
		return regexp.MustCompile(`(?s)^(?:` + pattern + `)$`).MatchString(got)
	}
	return got == want
}

// repeat is strings.Repeat for a number that may be written as 3e6.
func repeat(s string, n float64) string { return strings.Repeat(s, int(n)) }
