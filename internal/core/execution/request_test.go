package execution

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

var policy = Policy{MaxTimeout: time.Hour}

func valid() Request {
	return Request{TraceID: NewTraceID(), Code: "x", Language: Python, Timeout: time.Minute}
}

// entries returns a map of n entries with distinct keys of the form KEYn.
func entries(n int, value string) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("KEY%d", i)] = value
	}
	return m
}

// TestCheckBounds tries each bound of each field on both of its sides.
func TestCheckBounds(t *testing.T) {
	env := func(m map[string]string) func(*Request) { return func(r *Request) { r.Env = m } }
	meta := func(m map[string]string) func(*Request) { return func(r *Request) { r.Metadata = m } }
	code := func(s string) func(*Request) { return func(r *Request) { r.Code = s } }
	timeout := func(d time.Duration) func(*Request) { return func(r *Request) { r.Timeout = d } }
	language := func(l Language) func(*Request) { return func(r *Request) { r.Language = l } }
	// 15 values of 4,096 and one of what is left: exactly 64 KiB with the names.
	full := entries(15, strings.Repeat("v", MaxEnvValue))
	names := 0
	for k := range full {
		names += len(k)
	}
	full["LAST"] = strings.Repeat("v", MaxEnvBytes-15*MaxEnvValue-names-len("LAST"))
	over := maps.Clone(full)
	over["LAST"] += "v"

	for _, c := range []struct {
		name   string
		change func(*Request)
		want   string // part of the refusal; empty when admitted
	}{
		{"as it is", func(*Request) {}, ""},

		{"no code", code(""), "code must be between 1 byte and 1 MB"},
		{"one byte of code", code("1"), ""},
		{"most code", code(strings.Repeat("#", MaxCode)), ""},
		{"too much code", code(strings.Repeat("#", MaxCode+1)), "code must be between 1 byte and 1 MB"},
		{"code is measured in bytes", code(strings.Repeat("é", MaxCode/2+1)), "code must be between 1 byte and 1 MB"},
		{"NUL in code is the interpreter's matter", code("a\x00b"), ""},
		{"code that is not text", code("\xff"), "code must be valid UTF-8"},

		{"node", language(Node), ""},
		{"bash", language(Bash), ""},
		{"no language", language(""), `language must be one of "python", "node", "bash"`},
		{"wrong case", language("Python"), "language must be one of"},

		{"no time", timeout(0), "timeout must be at least 1 second"},
		{"negative time", timeout(-time.Second), "timeout must be at least 1 second"},
		{"least time", timeout(time.Second), ""},
		{"most time", timeout(time.Hour), ""},
		{"too much time", timeout(time.Hour + time.Second), "timeout exceeds your plan's maximum of 3600 seconds"},

		{"most variables", env(entries(50, "v")), ""},
		{"too many variables", env(entries(51, "v")), "env_vars must have at most 50 variables"},
		{"too many variables with wrong values", env(entries(51, "\x00")), "env_vars must have at most 50 variables"},
		{"shortest name", env(map[string]string{"A": ""}), ""},
		{"longest name", env(map[string]string{strings.Repeat("A", 128): "v"}), ""},
		{"too long a name", env(map[string]string{strings.Repeat("A", 129): "v"}), "1 to 128 uppercase letters"},
		{"empty name", env(map[string]string{"": "v"}), `env_vars name "" must be`},
		{"lower-case name", env(map[string]string{"Ab": "v"}), "uppercase letters"},
		{"name with a digit first", env(map[string]string{"1A": "v"}), "starting with a letter"},
		{"name with an underscore first", env(map[string]string{"_A": "v"}), "starting with a letter"},
		{"name with a newline last", env(map[string]string{"A\n": "v"}), `"A\n" must be`},
		{"name with an equals sign", env(map[string]string{"A=B": "v"}), "must be"},
		{"letters of other scripts", env(map[string]string{"Ä": "v"}), "must be"},
		{"longest value", env(map[string]string{"A": strings.Repeat("é", 4096)}), ""},
		{"too long a value", env(map[string]string{"A": strings.Repeat("é", 4097)}), `value of "A" must be at most 4096 characters`},
		{"value with NUL", env(map[string]string{"A": "a\x00"}), "must not contain a NUL character"},
		{"value that is not text", env(map[string]string{"A": "\xff"}), "must be valid UTF-8"},
		{"largest set", env(full), ""},
		{"too large a set", env(over), "env_vars must be at most 65536 bytes"},
		{"platform name", env(map[string]string{"ATOLL_X": "v"}), "the platform uses names that start with ATOLL_"},
		{"a name that only looks reserved", env(map[string]string{"PATHS": "v", "ATOLL": "v", "PYTHONPATH": "v", "TZ": "v"}), ""},

		{"most metadata", meta(entries(10, "v")), ""},
		{"too much metadata", meta(entries(11, "v")), "metadata must have at most 10 keys"},
		{"longest metadata key", meta(map[string]string{strings.Repeat("é", 40): ""}), ""},
		{"too long a metadata key", meta(map[string]string{strings.Repeat("k", 41): ""}), "must be 1 to 40 characters"},
		{"empty metadata key", meta(map[string]string{"": "v"}), `metadata key "" must be 1 to 40`},
		{"longest metadata value", meta(map[string]string{"k": strings.Repeat("é", 256)}), ""},
		{"too long a metadata value", meta(map[string]string{"k": strings.Repeat("v", 257)}), `value of "k" must be at most 256`},
		{"metadata value with NUL", meta(map[string]string{"k": "\x00"}), "NUL"},
		{"metadata key with NUL", meta(map[string]string{"\x00": "v"}), "NUL"},
		{"metadata that is not text", meta(map[string]string{"k": "\xff"}), "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := valid()
			c.change(&r)
			err := policy.Check(r)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want a refusal with %q", err, c.want)
			}
			if err == nil {
				return
			}
			want := fault.Invalid
			if c.name == "too much time" {
				want = fault.Exhausted
			}
			if fault.KindOf(err) != want {
				t.Errorf("the refusal's kind is %d, want %d", fault.KindOf(err), want)
			}
		})
	}
	for _, name := range ReservedEnv {
		r := valid()
		r.Env = map[string]string{name: "v"}
		if err := policy.Check(r); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s may be set: %v", name, err)
		}
	}
}

func TestCheckSandboxEnv(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"http_proxy", ""},
		{"Mixed_1", ""},
		{"_leading", ""},
		{"UPPER", ""},
		{strings.Repeat("a", MaxEnvKey), ""},
		{strings.Repeat("a", MaxEnvKey+1), "1 to 128 ASCII letters"},
		{"", "1 to 128 ASCII letters"},
		{"1a", "not starting with a digit"},
		{"a-b", "ASCII letters"},
		{"a=b", "ASCII letters"},
		{"a\n", "ASCII letters"},
		{"ä", "ASCII letters"},
		{"PATH", "reserved"},
		{"ATOLL_X", "the platform uses names"},
		{"atoll_x", "the platform uses names"},
	} {
		err := CheckSandboxEnv(map[string]string{c.name: "v"})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Invalid):
			t.Errorf("%q: %v, want %q", c.name, err, c.want)
		}
	}
	if err := CheckSandboxEnv(entries(51, "v")); err == nil || !strings.Contains(err.Error(), "at most 50") {
		t.Errorf("51 variables: %v", err)
	}
}

func TestCheckCountsTheEnvironmentsVariables(t *testing.T) {
	p := Policy{MaxTimeout: time.Hour, Env: map[string]string{"A": "environment", "B": "environment"}}
	r := valid()
	r.Env = entries(48, "v")
	if err := p.Check(r); err != nil {
		t.Errorf("50 variables in all: %v", err)
	}
	large := entries(15, strings.Repeat("v", MaxEnvValue))
	p.Env = map[string]string{"REST": strings.Repeat("v", MaxEnvValue)}
	r.Env = large
	if err := p.Check(r); err == nil || !strings.Contains(err.Error(), "65536 bytes in names and values together with those of the environment") {
		t.Errorf("too many bytes in all: %v", err)
	}
	large["REST"] = "" // in place of the long one
	if err := p.Check(r); err != nil {
		t.Errorf("a value that is not used counted: %v", err)
	}

	p.Env = map[string]string{"ONE_MORE": "v"}
	r.Env = entries(50, "v")
	if err := p.Check(r); err == nil || !strings.Contains(err.Error(), "together with those of the environment") {
		t.Errorf("51 variables after merging: %v", err)
	}
	r.Env = map[string]string{"ONE_MORE": "v"}
	if err := p.Check(r); err != nil {
		t.Errorf("the same variable counted twice: %v", err)
	}
}

func TestDefaultTimeoutFitsThePlan(t *testing.T) {
	if d := policy.DefaultTimeout(); d != 60*time.Second {
		t.Errorf("got %s", d)
	}
	if d := (Policy{MaxTimeout: 10 * time.Second}).DefaultTimeout(); d != 10*time.Second {
		t.Errorf("got %s for a plan of 10s", d)
	}
}
