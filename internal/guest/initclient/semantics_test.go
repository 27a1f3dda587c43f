package initclient_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// program is one that must do the same in a warmed interpreter and in one that
// a shell would have started.
type program struct {
	name string
	code string
	// more files beside it
	files map[string]string
	// blur makes numbers in the output equal where no two runs have the same.
	blur bool
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// same runs the programs both ways and compares all that a caller sees.
func same(t *testing.T, language string, preload []string, programs []program) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			spec := guesttest.Program(t, language, p.code)
			for name, data := range p.files {
				spec.Files = append(spec.Files, initclient.File{Path: runtime.Home + "/" + name, Mode: 0o644, Data: []byte(data)})
			}
			o, e, code := guesttest.Start(t).Bare(t, spec)
			bare := outcome{initclient.Result{ExitCode: code}, string(o), string(e)}

			c := guesttest.Start(t).Dial(t)
			w := guesttest.Warm(t, language)
			w.Preload = preload
			warm(t, c, w)
			got := run(t, c, spec)
			if !got.Warm {
				t.Fatal("the run was not warm")
			}
			if p.blur {
				for _, s := range []*string{&got.stdout, &got.stderr, &bare.stdout, &bare.stderr} {
					*s = numbers.ReplaceAllString(*s, "N")
				}
			}
			compare(t, "stdout", got.stdout, bare.stdout)
			compare(t, "stderr", got.stderr, bare.stderr)
			if got.ExitCode != bare.ExitCode {
				t.Errorf("exit code %d, bare %d", got.ExitCode, bare.ExitCode)
			}
			if !p.blur && bare.stdout+bare.stderr == "" && bare.ExitCode == 0 {
				t.Error("the program shows nothing")
			}
		})
	}
}

// compare reports the lines that differ.
func compare(t *testing.T, stream, got, bare string) {
	t.Helper()
	if got == bare {
		return
	}
	g, b := strings.Split(got, "\n"), strings.Split(bare, "\n")
	for i := range max(len(g), len(b)) {
		var l, m string
		if i < len(g) {
			l = g[i]
		}
		if i < len(b) {
			m = b[i]
		}
		if l != m {
			t.Errorf("%s from line %d on\nwarmed: %.2000q\nbare:   %.2000q", stream, i+1, l, m)
			return
		}
	}
}

// withVariable runs a program whose variables differ from those the interpreter
// was warmed with.
func withVariable(t *testing.T, language, code, entry string) (got, bare outcome) {
	t.Helper()
	spec := guesttest.Program(t, language, code)
	spec.Env = append(slices.Clone(spec.Env), entry)
	o, e, status := guesttest.Start(t).Bare(t, spec)
	c := guesttest.Start(t).Dial(t)
	warm(t, c, guesttest.Warm(t, language))
	got = run(t, c, spec)
	if !got.Warm {
		t.Fatal("the run was not warm")
	}
	return got, outcome{initclient.Result{ExitCode: status}, string(o), string(e)}
}
