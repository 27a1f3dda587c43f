package sandboxes_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/egress"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/test/atolltest"
)

// names resolves every name to one address.
type names netip.Addr

func (n names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.Addr(n)}, nil
}

// world is a machine whose sandboxes reach a server of HTTPS by every name; it
// answers with the header Authorization that it was sent.
func world(t *testing.T) (m *machine, url string, at netip.Prefix) {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var host netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			host = netip.MustParseAddr(n.IP.String())
		}
	}
	if !host.IsValid() {
		t.Fatal("this machine has no IPv4 address but 127.0.0.1, which is another one in a sandbox")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", r.Header.Get("Authorization"))
	}))
	_ = server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	t.Cleanup(server.Close)
	authority, err := egress.OpenAuthority(filepath.Join(t.TempDir(), "authority.pem"))
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	m = startWith(t, nil, func(c *engine.Config) {
		c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		c.Network.Egress.Open = []rules.Opening{{Net: netip.PrefixFrom(host, 32), Port: port}}
		c.Network.Egress.Resolver = names(host)
		c.Network.Egress.Authority = authority
	})
	return m, fmt.Sprintf("https://example.com:%d/", port), netip.PrefixFrom(host, 32)
}

// fetch is what a sandbox gets from a URL, with the secret that its program knows.
func (m *machine) fetch(p *tenant.Principal, name, url string) string {
	m.t.Helper()
	return m.shell(p, "s", name, `python3 - <<'END'
import os, urllib.request
try:
    r = urllib.request.Request("`+url+`", headers={"Authorization": os.environ.get("TOKEN", "")})
    print(urllib.request.urlopen(r, timeout=10).read().decode().strip())
except Exception as e:
    print("refused")
END`)
}

func TestTheNetworkOfALivingSandbox(t *testing.T) {
	t.Parallel()
	const placeholder = "atoll-bound-0123456789abcdef0123456789abcdef"
	m, url, at := world(t)
	ctx := t.Context()
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com", "*.example.com"}, AllowedCIDRs: []netip.Prefix{at}}
		p.Environment.Secrets = map[string]string{"TOKEN": "the real secret"}
		p.Environment.Bound = map[string]tenant.Binding{"TOKEN": {Hosts: []string{"example.com"}, Placeholder: placeholder}}
	})
	m.ensure(p, "s", "x", nil)
	if got := m.fetch(p, "x", url); got != "hello the real secret" {
		t.Errorf("at first: %q", got)
	}
	if got := m.shell(p, "s", "x", "env"); !strings.Contains(got, placeholder) || strings.Contains(got, "the real secret") {
		t.Errorf("the environment is %q", got)
	}
	change := func(policy runtime.NetworkPolicy) error {
		_, err := m.Update(ctx, p, "s", "x", sandbox.Change{Network: &policy})
		return err
	}
	want := func(when, want string) {
		t.Helper()
		if got := m.fetch(p, "x", url); got != want {
			t.Errorf("%s: %q, not %q", when, got, want)
		}
	}
	if err := change(runtime.NetworkPolicy{}); err != nil {
		t.Fatal(err)
	}
	want("blocked", "refused")
	refused(t, "more than the environment", change(runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}), fault.Forbidden, "never more")
	if err := change(runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"www.example.com"}}); err != nil {
		t.Fatal(err)
	}
	want("another host alone", "refused")
	if err := change(p.Environment.Permissions.Network); err != nil {
		t.Fatal(err)
	}
	want("opened again", "hello the real secret")

	m.restart()
	want("after a take-over", "hello the real secret")
	p.Environment.Secrets = map[string]string{"TOKEN": "another secret"}
	want("with the secret of now", "hello another secret")
	p.Tenant.NetworkEnabled = false
	want("when the tenant has no network any more", "refused")
	p.Tenant.NetworkEnabled = true
	p.Environment.Permissions.Network.AllowedHosts = []string{"other.test"}
	want("when the environment allows less", "refused")

	// What was narrowed stays so when the environment is tightened beside it.
	p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}
	if err := change(runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"www.example.com"}}); err != nil {
		t.Fatal(err)
	}
	p.Environment.Permissions.Network.BlockedPorts = []uint16{25}
	want("narrowed, and a port blocked for all", "refused")

	plain := m.caller("plain")
	m.ensure(plain, "s", "x", nil)
	if got := m.shell(plain, "s", "x", "tail -n +3 /proc/net/dev"); strings.Contains(got, "eth0") {
		t.Errorf("without a network there is %q", got)
	}
	plain.Tenant.NetworkEnabled = true
	plain.Environment.Permissions.Network.Mode = runtime.NetworkUnrestricted
	_, err := m.Update(ctx, plain, "s", "x", sandbox.Change{Network: &plain.Environment.Permissions.Network})
	refused(t, "a network for a sandbox without", err, fault.Conflict, "made without a network")
}

// TestNoNetworkWithoutAValidKey: when no valid key remains for a sandbox, its connections
// end.
func TestNoNetworkWithoutAValidKey(t *testing.T) {
	t.Parallel()
	m, url, _ := world(t)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Tenant.NetworkEnabled = true
		p.Environment.Permissions.Network.Mode = runtime.NetworkUnrestricted
	})
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `(while :; do curl -sm1 `+url+` >> /home/user/log 2>/dev/null; echo tried >> /home/user/log; sleep 0.1; done) >/dev/null 2>&1 &
for i in $(seq 100); do grep -q hello log 2>/dev/null && exit 0; sleep 0.1; done; exit 1`)
	delete(m.callers, p.Key.ID) // revoked
	m.restart()
	sb, err := m.Get(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Reach(t.Context(), sb.ID) // by who has no key
	refused(t, "a preview of a sandbox without a valid key", err, fault.Unauthorized, "every key that has used this sandbox")
	log, err := filepath.Glob(filepath.Join(m.dir, "state", engine.Server, engine.SandboxFolder, string(sb.ID), "*", "*", "home", "log"))
	if err != nil || len(log) != 1 {
		t.Fatalf("%v, %v", log, err)
	}
	if err := os.Truncate(log[0], 0); err != nil {
		t.Fatal(err)
	}
	var out []byte
	atolltest.Until(t, time.Minute, "the loop has tried thrice", func() bool {
		out, err = os.ReadFile(log[0])
		return err != nil || strings.Count(string(out), "tried") >= 3
	})
	if err != nil || strings.Contains(string(out), "hello") {
		t.Errorf("the loop gets %q, %v", out, err)
	}
	m.shell(p, "s", "x", `for i in $(seq 100); do grep -q hello log && exit 0; sleep 0.1; done; exit 1`)
}

// TestCertificatesOfANamedSandbox: a named sandbox keeps the certificates that it started with, also
// through sleep and in forks, until it restarts.
func TestCertificatesOfANamedSandbox(t *testing.T) {
	t.Parallel()
	for name, authority := range map[string]bool{"with the installation's authority": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, url, at := world(t)
			p := m.caller("a", func(p *tenant.Principal) {
				p.Tenant.NetworkEnabled = true
				p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}, AllowedCIDRs: []netip.Prefix{at}}
			})
			var ca []byte
			before := m.network
			m.network = func(c *engine.Config) {
				before(c)
				if ca = c.CA; !authority {
					c.Network.Egress.Authority = nil
				}
				c.CA = nil
			}
			m.restart()
			variables := func(name string) bool {
				return strings.Contains(m.shell(p, "s", name, "env"), "NODE_EXTRA_CA_CERTS=") &&
					m.shell(p, "s", name, `test -s "$NODE_EXTRA_CA_CERTS" && test -s "$SSL_CERT_FILE" && echo there`) == "there"
			}
			m.ensure(p, "s", "x", nil)
			if err := m.engine.SetCA(ca); err != nil {
				t.Fatal(err)
			}
			m.ensure(p, "s", "y", nil)
			if x, y := m.fetch(p, "x", url), m.fetch(p, "y", url); x != "refused" || y != "hello" {
				t.Errorf("after the change the old sandbox printed %q and the new one %q", x, y)
			}
			if x, y := variables("x"), variables("y"); x != authority || !y {
				t.Errorf("the variables of certificates: %t in the old sandbox, %t in the new one", x, y)
			}
			m.sleep(p, "s", "x")
			if got := m.fetch(p, "x", url); got != "refused" {
				t.Errorf("woken, the old sandbox printed %q", got)
			}
			if _, err := m.Restart(t.Context(), p, "s", "x"); err != nil {
				t.Fatal(err)
			}
			if got := m.fetch(p, "x", url); got != "hello" || !variables("x") {
				t.Errorf("restarted, the old sandbox printed %q", got)
			}
			if err := m.engine.SetCA(nil); err != nil {
				t.Fatal(err)
			}
			forks, err := m.Fork(t.Context(), p, "s", "y", 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.fetch(p, forks[0].Name, url); got != "hello" || !variables(forks[0].Name) {
				t.Errorf("a fork of a sandbox with the certificates printed %q", got)
			}
			for _, name := range []string{"x", "y", forks[0].Name} {
				if err := m.Destroy(t.Context(), p, "s", name); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{filepath.Join(m.dir, "state"), filepath.Join(m.dir, "state", engine.Server)} {
				if images, err := filepath.Glob(filepath.Join(dir, "guest-*-"+engine.Server+".erofs")); err != nil || len(images) > 0 {
					t.Errorf("guest images with the certificates are left: %q, %v", images, err)
				}
			}
		})
	}
}
