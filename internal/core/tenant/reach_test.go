package tenant_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestReach is what the server does for agents in environments.
func TestReach(t *testing.T) {
	rules := func(p runtime.NetworkPolicy) tenant.Environment {
		return tenant.Environment{Name: "e", Permissions: runtime.Permissions{Network: p}}
	}
	named := rules(runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"api.example.com", "*.example.org"}, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, BlockedPorts: []uint16{8080}})
	profile := func(p tenant.Profile) tenant.Environment {
		return tenant.Environment{Profile: string(p), Permissions: p.Permissions()}
	}
	asked := profile(tenant.Isolated)
	asked.AllowMCP = true
	for _, c := range []struct {
		what                    string
		e                       tenant.Environment
		tenant                  bool // has a network
		url                     string
		fetches, asks, searches bool
	}{
		{"an environment that says nothing", tenant.Environment{}, false, "http://10.0.0.1/", true, true, true},
		{"a name", named, true, "https://API.example.com./x", true, true, false},
		{"below a name", named, true, "https://a.example.org", true, true, false},
		{"another name", named, true, "https://example.org", false, false, false},
		{"a blocked port", named, true, "http://api.example.com:8080", false, false, false},
		{"an address", named, true, "http://203.0.113.7", true, true, false},
		{"the address as IPv6", named, true, "http://[::ffff:203.0.113.7]", true, true, false},
		{"another address", named, true, "http://203.0.114.7", false, false, false},
		{"a tenant without a network", named, false, "https://api.example.com", false, false, false},
		{"standard", profile(tenant.StandardUse), true, "https://any.example", true, true, true},
		{"standard, an address", profile(tenant.StandardUse), true, "https://203.0.113.7", false, false, true},
		{"restricted", profile(tenant.Restricted), true, "https://any.example", false, false, false},
		{"unrestricted", profile(tenant.Unrestricted), true, "https://203.0.113.7", true, true, true},
		{"isolated", profile(tenant.Isolated), true, "https://any.example", false, false, false},
		{"isolated, with servers", asked, true, "https://any.example", false, true, false},
	} {
		p := tenant.Principal{Tenant: tenant.Tenant{NetworkEnabled: c.tenant}, Environment: c.e}
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if fetches, asks, searches := p.Fetches(u) == nil, p.Asks(c.url) == nil, p.Searches() == nil; fetches != c.fetches || asks != c.asks || searches != c.searches {
			t.Errorf("%s: fetches %t, asks %t, searches %t", c.what, fetches, asks, searches)
		}
	}
}

// TestEnter has keys work in environments that they are not bound to.
func TestEnter(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	for _, name := range []string{"acme", "other"} {
		w.tenant(name, tenant.TenantChange{})
		for _, e := range []string{"e", name + "-e"} {
			_, err := w.CreateEnvironment(ctx, "", name, e, tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"OF": e}}})
			w.must(err)
		}
	}
	theirs, err := w.Environment(ctx, "other", "e")
	w.must(err)
	wide, _, err := w.CreateKey(ctx, "", "acme", "e", "wide", tenant.KeyChange{Scopes: &[]tenant.Scope{tenant.ScopeExecute, tenant.ScopeEnvironments}})
	w.must(err)
	narrow, _, err := w.CreateKey(ctx, "", "acme", "e", "narrow", tenant.KeyChange{})
	w.must(err)
	for _, c := range []struct {
		key tenant.Key
		in  string
		of  string // the variable; "" for refused
	}{{narrow, "", "e"}, {narrow, "e", "e"}, {narrow, narrow.Environment, "e"}, {narrow, "acme-e", ""}, {narrow, theirs.ID, ""}, {wide, "acme-e", "acme-e"}, {wide, "other-e", ""}, {wide, theirs.ID, ""}} {
		p, err := w.authority.Entrant(ctx, c.key.Tenant, c.key.ID, c.in)
		kind := fault.Forbidden
		if c.key.Name == "wide" {
			kind = fault.NotFound
		}
		if c.of == "" && fault.KindOf(err) != kind || c.of != "" && (err != nil || p.Variables()["OF"] != c.of || p.Environment.Tenant != c.key.Tenant) {
			t.Errorf("%s in %q: %v, %v", c.key.Name, c.in, p.Environment, err)
		}
	}
}
