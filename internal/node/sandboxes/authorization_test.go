package sandboxes_test

import (
	"net/netip"
	"strings"
	"testing"

	control "github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// second is another key of p's environment.
func (m *machine) second(p *tenant.Principal, change func(*tenant.Key)) *tenant.Principal {
	other := *p
	other.Key = tenant.Key{ID: p.Key.ID + "_second"}
	change(&other.Key)
	m.callers[other.Key.ID] = &other
	return &other
}

// covered is what of a text is shown to p.
func (m *machine) covered(p *tenant.Principal, text string) string {
	m.t.Helper()
	h, err := m.Use(m.t.Context(), p, "s", "x")
	if err != nil {
		m.t.Fatal(err)
	}
	defer h.Close()
	covers, err := h.Redactor(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return string(covers.Bytes([]byte(text)))
}

// TestSecretsOfAllWhoUsedASandbox: who reads output does not see the secrets of
// others whose programs it may be of, nor those that were changed since.
func TestSecretsOfAllWhoUsedASandbox(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	a := m.caller("a", func(p *tenant.Principal) { p.Key.Secrets = map[string]string{"S": "first-of-a"} })
	b := m.second(a, func(k *tenant.Key) { k.Secrets = map[string]string{"S": "the-one-of-b"} })
	m.ensure(a, "s", "x", nil)
	m.shell(a, "s", "x", "true")
	if got := m.covered(b, "first-of-a the-one-of-b"); strings.Contains(got, "of-") {
		t.Errorf("b sees %q", got)
	}
	a.Key.Secrets = map[string]string{"S": "second-of-a"}
	m.Reauthorize(t.Context())
	for _, p := range []*tenant.Principal{a, b} {
		if got := m.covered(p, "first-of-a second-of-a the-one-of-b"); strings.Contains(got, "of-") {
			t.Errorf("%s sees %q", p.Key.ID, got)
		}
	}
	forks, err := m.Fork(t.Context(), b, "s", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Use(t.Context(), b, "", string(forks[0].ID))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	covers, err := h.Redactor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(covers.Bytes([]byte("first-of-a second-of-a the-one-of-b"))); strings.Contains(got, "of-") {
		t.Errorf("of a copy b sees %q", got)
	}
}

// TestBoundSecretsAreTheMakers: all programs of a sandbox share its network, so it
// spends the secrets of no key but the one that made it.
func TestBoundSecretsAreTheMakers(t *testing.T) {
	t.Parallel()
	const placeholders = "atoll-bound-"
	m, url, _ := world(t)
	a := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network.Mode = runtime.NetworkUnrestricted
		p.Key.Secrets = map[string]string{"TOKEN": "secret of a"}
		p.Key.Bound = map[string]tenant.Binding{"TOKEN": {Hosts: []string{"example.com"}, Placeholder: placeholders + strings.Repeat("a", 32)}}
	})
	b := m.second(a, func(k *tenant.Key) {
		k.Secrets = map[string]string{"TOKEN": "secret of b"}
		k.Bound = map[string]tenant.Binding{"TOKEN": {Hosts: []string{"example.com"}, Placeholder: placeholders + strings.Repeat("b", 32)}}
	})
	m.ensure(a, "s", "x", nil)
	for range 2 {
		if got := m.fetch(a, "x", url); got != "hello secret of a" {
			t.Errorf("by a: %q", got)
		}
		if got := m.fetch(b, "x", url); got != "hello "+placeholders+strings.Repeat("b", 32) {
			t.Errorf("by b: %q", got)
		}
	}
	delete(m.callers, a.Key.ID) // revoked; b's is not
	m.Reauthorize(t.Context())
	if got := m.shell(b, "s", "x", "TOKEN="+placeholders+strings.Repeat("a", 32)+" python3 -c '"+
		`import os, urllib.request; print(urllib.request.urlopen(urllib.request.Request("`+url+`", headers={"Authorization": os.environ["TOKEN"]})).read().decode())`+"'"); strings.Contains(got, "secret of a") {
		t.Errorf("with a's key revoked: %q", got)
	}
}

// TestWhatIsTakenAwayEndsWithoutAUse: a sandbox loses what no caller may have any more,
// without being used.
func TestWhatIsTakenAwayEndsWithoutAUse(t *testing.T) {
	t.Parallel()
	m, url, _ := world(t)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network.Mode = runtime.NetworkUnrestricted
	})
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `(while :; do curl -sm1 `+url+` 2>/dev/null | grep -q hello && echo on >> log; sleep 0.1; done) >/dev/null 2>&1 &
for i in $(seq 100); do grep -q on log 2>/dev/null && exit 0; sleep 0.1; done; exit 1`)
	m.callers[p.Key.ID] = &tenant.Principal{Tenant: p.Tenant, Environment: p.Environment, Key: p.Key}
	m.callers[p.Key.ID].Tenant.NetworkEnabled = false
	m.Reauthorize(t.Context())
	h, err := m.Reach(t.Context(), sb.ID) // by a preview, which needs no network
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t.Context(), h, `sleep 1.5; : > log; sleep 1; cat log`)
	h.Close()
	if err != nil || out != "" {
		t.Errorf("with the network taken away, the loop gets %q, %v", out, err)
	}
	delete(m.callers, p.Key.ID)
	m.Reauthorize(t.Context())
	_, err = m.Reach(t.Context(), sb.ID)
	refused(t, "a preview of a sandbox without a valid key", err, fault.Unauthorized, "every key that has used this sandbox")
	m.sleep(p, "s", "x")
	_, err = m.Reach(t.Context(), sb.ID)
	refused(t, "a preview of a sandbox without a valid key that sleeps", err, fault.Unauthorized, "every key that has used this sandbox")
	m.callers[p.Key.ID] = p
	if h, err = m.Reach(t.Context(), sb.ID); err != nil {
		t.Fatal(err)
	}
	h.Close()
	m.shell(p, "s", "x", `for i in $(seq 100); do grep -q on log && exit 0; sleep 0.1; done; exit 1`)
}

// TestNoPreviewsOfRefusedRoot: a preview neither reaches nor wakes a sandbox that runs
// programs as root when its tenant's policy no longer allows that.
func TestNoPreviewsOfRefusedRoot(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.RootEnabled, p.Environment.Permissions.Process.Root = true, true
	})
	sb := m.ensure(p, "s", "x", nil)
	reach := func() error {
		h, err := m.Reach(t.Context(), sb.ID)
		if err == nil {
			h.Close()
		}
		return err
	}
	if err := reach(); err != nil {
		t.Fatal(err)
	}
	allowed := m.callers[p.Key.ID]
	without := *p
	without.Tenant.RootEnabled = false
	m.callers[p.Key.ID] = &without
	m.Reauthorize(t.Context())
	refused(t, "a preview of a running one", reach(), fault.Forbidden, "run as root")
	m.callers[p.Key.ID] = allowed
	m.Reauthorize(t.Context())
	if err := reach(); err != nil {
		t.Errorf("with root allowed again: %v", err)
	}
	m.sleep(p, "s", "x")
	m.callers[p.Key.ID] = &without
	refused(t, "a preview of a sleeping one", reach(), fault.Forbidden, "run as root")
	if got := m.get(p, "s", "x"); got.State != sandbox.Sleeping {
		t.Errorf("the preview left it %s", got.State)
	}
}

// TestHostsAreOnRecord: what a sandbox contacts, and what it is refused, stands in
// the audit trail.
func TestHostsAreOnRecord(t *testing.T) {
	t.Parallel()
	m, url, at := world(t)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}, AllowedCIDRs: []netip.Prefix{at}}
	})
	sb := m.ensure(p, "s", "x", nil)
	m.fetch(p, "x", url)
	m.fetch(p, "x", strings.Replace(url, "example.com", "other.test", 1))
	if err := m.Destroy(t.Context(), p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	rows, _, err := m.db.Audit().List(t.Context(), audit.Filter{Tenant: p.Tenant.ID, TraceID: string(sb.ID), Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Source != control.Source || rows[0].SessionID != "s" || rows[0].Key != p.Key.ID ||
		strings.Join(rows[0].OutboundHosts, " ") != "example.com refused other.test (allowed_hosts)" {
		t.Errorf("on record: %+v", rows)
	}
}

// TestReauthorizeInAnotherEnvironment: a key with the scope environments keeps the sandboxes that
// it created in an environment other than its own, until it loses the scope.
func TestReauthorizeInAnotherEnvironment(t *testing.T) {
	t.Parallel()
	m, url, _ := world(t)
	own := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network.Mode = runtime.NetworkUnrestricted
		p.Key.Scopes = []tenant.Scope{tenant.ScopeEnvironments}
		p.Key.Secrets = map[string]string{"TOKEN": "secret of a"}
		p.Key.Bound = map[string]tenant.Binding{"TOKEN": {Hosts: []string{"example.com"}, Placeholder: "atoll-bound-" + strings.Repeat("a", 32)}}
	})
	p := entered(own, "env_other")
	m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	m.Reauthorize(t.Context())
	if out, _, err := run(t.Context(), h, "echo the connection lasts"); err != nil || out != "the connection lasts" {
		t.Errorf("after a check of its keys a sandbox answers %q, %v", out, err)
	}
	if got := m.fetch(p, "x", url); got != "hello secret of a" {
		t.Errorf("after a check of its keys a program fetches %q", got)
	}
	own.Key.Scopes = nil
	m.Reauthorize(t.Context())
	_, err = m.Reach(t.Context(), h.Sandbox().ID)
	refused(t, "a preview without the scope", err, fault.Unauthorized, "may no longer work in its environment")
}
