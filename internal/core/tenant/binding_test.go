package tenant_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func bindTo(name string, hosts ...string) tenant.VariablesChange {
	return tenant.VariablesChange{Hosts: map[string][]string{name: hosts}}
}

// TestBoundSecrets follows secrets of both levels through what can become of
// them: programs get a placeholder, and who carries their requests the rest.
func TestBoundSecrets(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	e, err := w.CreateEnvironment(ctx, "", "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{
		Secrets: map[string]string{"S": "environment-secret", "T": "another-secret", "FREE": "a-free-secret"},
		Hosts:   map[string][]string{"S": {"api.example.com"}, "T": {"*.example.com", "b.test"}},
	}})
	w.must(err)
	_, key, err := w.CreateKey(ctx, "", "acme", "e", "k", tenant.KeyChange{Variables: tenant.VariablesChange{
		Secrets: map[string]string{"T": "key-secret"}, Hosts: map[string][]string{"T": {"key.test"}},
	}})
	w.must(err)
	p, err := w.authority.Authenticate(ctx, key)
	w.must(err)
	of := func(name string) string { return p.Variables()[name] }
	form := regexp.MustCompile(`^atoll-bound-[0-9a-f]{32}$`)
	if !form.MatchString(of("S")) || !form.MatchString(of("T")) || of("S") == of("T") || of("FREE") != "a-free-secret" {
		t.Fatalf("programs get %v", p.Variables())
	}
	for level, vars := range map[string]map[string]string{"environment": p.Environment.Variables(), "key": p.Key.Variables()} {
		for name, v := range vars {
			if strings.HasSuffix(v, "-secret") && name != "FREE" {
				t.Errorf("programs get %s of the %s: %s", name, level, v)
			}
		}
	}
	want := []execution.BoundSecret{
		{Placeholder: of("S"), Value: "environment-secret", Hosts: []string{"api.example.com"}},
		{Placeholder: of("T"), Value: "key-secret", Hosts: []string{"key.test"}},
	}
	same := func(a, b execution.BoundSecret) bool {
		return a.Placeholder == b.Placeholder && a.Value == b.Value && slices.Equal(a.Hosts, b.Hosts)
	}
	if got := p.BoundSecrets(); !slices.EqualFunc(got, want, same) {
		t.Errorf("bound are %v, want %v", got, want)
	}
	if got, want := p.Secrets(), []string{"a-free-secret", "environment-secret", "key-secret"}; !slices.Equal(got, want) {
		t.Errorf("covered in output are %q, want %q", got, want)
	}

	change := func(c tenant.VariablesChange) tenant.Environment {
		t.Helper()
		e, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: c})
		w.must(err)
		return e
	}
	first := e.Bound["S"].Placeholder
	if e = change(tenant.VariablesChange{Secrets: map[string]string{"S": "replaced-secret"}}); e.Bound["S"].Placeholder != first || !slices.Equal(e.Bound["S"].Hosts, []string{"api.example.com"}) {
		t.Errorf("a new value unbinds: %v", e.Bound)
	}
	if e = change(bindTo("S", "c.test")); e.Bound["S"].Placeholder != first || !slices.Equal(e.Bound["S"].Hosts, []string{"c.test"}) {
		t.Errorf("other hosts: %v", e.Bound)
	}
	if e = change(bindTo("S")); len(e.Bound) != 1 || e.Variables()["S"] != "replaced-secret" {
		t.Errorf("no hosts: %v", e.Bound)
	}
	if e = change(tenant.VariablesChange{Env: map[string]string{"T": "plain"}}); e.Bound != nil || e.Variables()["T"] != "plain" {
		t.Errorf("a plain variable in its place: %v", e.Bound)
	}
	change(bindTo("S", "c.test"))
	if e = change(tenant.VariablesChange{Unset: []string{"S"}}); e.Bound != nil {
		t.Errorf("after taking away: %v", e.Bound)
	}
}

func TestBindingsExplain(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	_, err := w.CreateEnvironment(ctx, "", "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{
		Env: map[string]string{"PLAIN": "12345678"}, Secrets: map[string]string{"S": "12345678", "LINES": "1234\n5678", "ACCENTS": "ä2345678"},
	}})
	w.must(err)
	for says, c := range map[string]tenant.VariablesChange{
		`secret "PLAIN" not found`:  bindTo("PLAIN", "a.test"),
		`secret "NONE" not found`:   bindTo("NONE", "a.test"),
		"to any host":               bindTo("S", "*"),
		"without scheme":            bindTo("S", "https://a.test"),
		"certificates are for":      bindTo("S", "10.0.0.1"),
		"can be bound to 32":        bindTo("S", slices.Repeat([]string{"a.test"}, 33)...),
		`"LINES" is bound`:          bindTo("LINES", "a.test"),
		`"ACCENTS" is bound`:        bindTo("ACCENTS", "a.test"),
		`secret "S" not found; set`: {Unset: []string{"S"}, Hosts: map[string][]string{"S": {"a.test"}}},
		`"S" is bound to hosts and`: {Secrets: map[string]string{"S": " 12345678"}, Hosts: map[string][]string{"S": {"a.test"}}},
	} {
		_, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: c})
		refused(t, err, fault.Invalid, says)
	}
}
