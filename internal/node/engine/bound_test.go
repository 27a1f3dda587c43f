package engine

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/executor"
)

const (
	standsFor = "atoll-bound-0123456789abcdef0123456789abcdef"
	realValue = "correct horse battery staple"
)

// asked is what hosts were sent.
type asked struct {
	mu    sync.Mutex
	lines []string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, _, _ := net.SplitHostPort(r.Host)
	a.lines = append(a.lines, fmt.Sprintf("%s %d %s", name, r.ProtoMajor, r.Header.Get("Authorization")))
	fmt.Fprint(w, "thanks\n")
}

func (a *asked) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := strings.Join(a.lines, "\n")
	a.lines = nil
	return text
}

// hosts starts a server of HTTPS, for example.com and all below it, on an address
// of this machine's, and an engine whose sandboxes reach it by every name.
func hosts(t *testing.T, http2 bool, change func(*Config)) (e *Engine, here netip.AddrPort, got *asked) {
	t.Helper()
	got = &asked{}
	at := greeter(t).Addr()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(got)
	_ = server.Listener.Close()
	server.Listener, server.EnableHTTP2 = l, http2
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := folder(t)
	authority, err := egress.OpenAuthority(filepath.Join(dir, "authority.pem"))
	if err != nil {
		t.Fatal(err)
	}
	here = netip.MustParseAddrPort(l.Addr().String())
	e = start(t, dir, func(c *Config) {
		c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		c.Network.Egress.Open = []rules.Opening{{Net: netip.PrefixFrom(at, 32), Port: here.Port()}}
		c.Network.Egress.Resolver = names(at)
		c.Network.Egress.Authority = authority
		if change != nil {
			change(c)
		}
	})
	return e, here, got
}

// boundJob has a secret for api.example.com, and may reach other hosts too, which
// are here.
func boundJob(here netip.AddrPort, language execution.Language) *execution.Job {
	return job(func(j *execution.Job) {
		j.Language = language
		j.BaseEnv = map[string]string{"TOKEN": standsFor}
		j.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(here.Addr(), 32)}}
		j.BoundSecrets = []execution.BoundSecret{{Placeholder: standsFor, Value: realValue, Hosts: []string{"api.example.com"}}}
	})
}

func tell(t *testing.T, c executor.Claimed, l execution.Language, code string) string {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	out, err := c.Run(t.Context(), execution.Program{ID: uint64(time.Now().UnixNano()), Language: l, Code: code, Timeout: time.Minute, MaxBytes: 1 << 20},
		func(_ execution.Stream, p []byte) { b.Write(p) })
	if err != nil || out.ExitCode != 0 {
		t.Errorf("ended with %+v, %v", out, err)
	}
	return b.String()
}

// TestBoundSecretsReachTheirHost runs the clients that people use: the host of a
// secret is told it, another one the placeholder, and the program never has it.
func TestBoundSecretsReachTheirHost(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { boundSecretsReachTheirHost(t, 1) })
	t.Run("HTTP/2", func(t *testing.T) { boundSecretsReachTheirHost(t, 2) })
}

func boundSecretsReachTheirHost(t *testing.T, version int) {
	e, here, got := hosts(t, version == 2, nil)
	const node2 = `const c = require('http2').connect('https://HOST:PORT');
const r = c.request({':path': '/', authorization: 'Bearer ' + process.env.TOKEN});
r.on('data', d => process.stdout.write(d)); r.on('close', () => c.close()); r.end();`
	const nodeEnd = `
console.log(JSON.stringify(process.env), require('fs').readFileSync('/proc/self/environ', 'latin1'));`
	const shellEnd = "; env; cat /proc/self/environ /proc/$$/environ"
	for _, c := range []struct {
		name     string
		language execution.Language
		code     string
	}{
		{"Python", execution.Python, `import os, urllib.request as u
print(u.urlopen(u.Request('https://HOST:PORT/', headers={'Authorization': 'Bearer ' + os.environ['TOKEN']})).read().decode())
print(dict(os.environ), open('/proc/self/environ').read())`},
		{"requests", execution.Python, `import os, requests
print(requests.get('https://HOST:PORT/', headers={'Authorization': 'Bearer ' + os.environ['TOKEN']}).text)
print(dict(os.environ), open('/proc/self/environ').read())`},
		{"curl", execution.Bash, `curl -sS --http1.1 -w "HTTP/%{http_version} " -H "Authorization: Bearer $TOKEN" https://HOST:PORT/` + shellEnd},
		{"curl, HTTP/2", execution.Bash, `curl -sS --http2 -w "HTTP/%{http_version} " -H "Authorization: Bearer $TOKEN" https://HOST:PORT/` + shellEnd},
		{"Node", execution.Node, `fetch('https://HOST:PORT/', {headers: {authorization: 'Bearer ' + process.env.TOKEN}}).then(r => r.text()).then(t => console.log(t));` + nodeEnd},
		{"Node, HTTP/2", execution.Node, node2 + nodeEnd},
	} {
		if c.name == "Node, HTTP/2" && version == 1 {
			continue // it would not talk to a host that has no HTTP/2
		}
		t.Run(c.name, func(t *testing.T) {
			for host, token := range map[string]string{"api.example.com": realValue, "other.example.com": standsFor} {
				claimed, _, err := e.Claim(t.Context(), boundJob(here, c.language))
				if err != nil {
					t.Fatal(err)
				}
				out := tell(t, claimed, c.language, strings.NewReplacer("HOST", host, "PORT", fmt.Sprint(here.Port())).Replace(c.code))
				destroy(t, claimed)
				// What the gateway speaks with a host is not what the program does.
				asked := got.take()
				if want := fmt.Sprintf("%s %d Bearer %s", host, version, token); asked != want && (token == realValue || asked != strings.Replace(want, " 2 ", " 1 ", 1)) {
					t.Errorf("%s was asked %q, want %q", host, asked, want)
				}
				if want := map[string]string{"curl": "HTTP/1.1 ", "curl, HTTP/2": "HTTP/2 "}[c.name]; token == realValue && !strings.Contains(out, want) {
					t.Errorf("the program did not speak %s: %q", want, out)
				}
				if !strings.Contains(out, "thanks") || strings.Contains(out, realValue) || strings.Count(out, standsFor) < 2 {
					t.Errorf("the program printed %q", out)
				}
			}
		})
	}
}

// TestWithoutBoundSecretsNothingIsIntercepted looks at the certificate that a
// program is shown, and at what its sandbox trusts.
func TestWithoutBoundSecretsNothingIsIntercepted(t *testing.T) {
	e, here, _ := hosts(t, true, nil)
	const issuer = `curl -sSvo /dev/null https://%s:%d/ 2>&1 | grep -c 'issuer:.*Atoll'; grep -c . /.atoll/bound-ca.pem >/dev/null && echo $NODE_EXTRA_CA_CERTS`
	for what, c := range map[string]struct {
		host  string
		bound bool
		want  string
	}{
		"its host":     {"api.example.com", true, "1\n/.atoll/bound-ca.pem\n"},
		"another host": {"other.example.com", true, "0\n/.atoll/bound-ca.pem\n"},
		"no secret":    {"api.example.com", false, "0\n/.atoll/ca.pem\n"},
	} {
		j := boundJob(here, execution.Bash)
		if !c.bound {
			j.BoundSecrets = nil
		}
		claimed, _, err := e.Claim(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if out := tell(t, claimed, execution.Bash, fmt.Sprintf(issuer, c.host, here.Port())); out != c.want {
			t.Errorf("%s: %q, want %q", what, out, c.want)
		}
		destroy(t, claimed)
	}
}

// Two keys share an environment's sandboxes, not their secrets.
func TestBoundSecretsAreTheJobs(t *testing.T) {
	e, here, got := hosts(t, true, nil)
	ask := fmt.Sprintf(`curl -sS -H "Authorization: $TOKEN" https://api.example.com:%d/`, here.Port())
	for _, value := range []string{"the first one's", "the second one's"} {
		j := boundJob(here, execution.Bash)
		j.BoundSecrets[0].Value = value
		claimed, _, err := e.Claim(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		tell(t, claimed, execution.Bash, ask)
		destroy(t, claimed)
		if asked := got.take(); asked != "api.example.com 2 "+value {
			t.Errorf("was asked %q", asked)
		}
	}
}

// A sandbox without a network holds placeholders. One with a network is not made
// where secrets cannot be put into what it sends.
func TestBoundSecretsNeedAnAuthority(t *testing.T) {
	e, here, _ := hosts(t, true, func(c *Config) { c.Network.Egress.Authority = nil })
	_, _, err := e.Claim(t.Context(), boundJob(here, execution.Bash))
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "certificate authority") {
		t.Errorf("without an authority: %v", err)
	}
	j := boundJob(here, execution.Bash)
	j.BoundSecrets = nil
	if c, _, err := e.Claim(context.WithoutCancel(t.Context()), j); err != nil {
		t.Errorf("without bound secrets: %v", err)
	} else {
		destroy(t, c)
	}
	j = boundJob(here, execution.Bash)
	j.Permissions.Network = runtime.NetworkPolicy{}
	j.Code = "echo $TOKEN"
	if out, _ := run(t, e, j); out != standsFor+"\n" {
		t.Errorf("without a network the program holds %q", out)
	}
}
