package execution_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

func TestNetworkHint(t *testing.T) {
	open := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"a.example"}}
	refused := execution.Traffic{Refused: []execution.Refusal{{Rule: "dns_rate"}, {Host: "b.example", Rule: "allowed_hosts"}}}
	for _, c := range []struct {
		name    string
		network runtime.NetworkPolicy
		traffic execution.Traffic
		said    string
		want    string
	}{
		{"Python", runtime.NetworkPolicy{}, execution.Traffic{}, "socket.gaierror: [Errno -3] Temporary failure in name resolution", "--allow pypi"},
		{"C", runtime.NetworkPolicy{}, execution.Traffic{}, "Name or service not known", "no network"},
		{"Node.js", runtime.NetworkPolicy{Mode: runtime.NetworkBlocked}, execution.Traffic{}, "Error: getaddrinfo EAI_AGAIN example.com", "no network"},
		{"curl", runtime.NetworkPolicy{}, execution.Traffic{}, "curl: (6) Could not resolve host: example.com", "no network"},
		{"pip", runtime.NetworkPolicy{}, execution.Traffic{}, "ERROR: Could not find a version that satisfies the requirement six (from versions: none)", "--allow pypi"},
		{"an address", runtime.NetworkPolicy{}, execution.Traffic{}, "OSError: [Errno 101] Network is unreachable", "no network"},
		{"another failure", runtime.NetworkPolicy{}, execution.Traffic{}, "ZeroDivisionError: division by zero", ""},
		{"a host that is not allowed", open, refused, "HTTP 403", "--allow b.example"},
		{"a network", open, execution.Traffic{}, "Could not resolve host", ""},
		{"a proxy's certificate", open, refused, "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in certificate chain", "sandbox_ca_bundle"},
		{"a proxy's certificate, of curl", open, execution.Traffic{}, "curl: (60) SSL certificate problem: unable to get local issuer certificate", "sandbox_ca_bundle"},
		{"a proxy's certificate, of npm", open, execution.Traffic{}, "npm error code SELF_SIGNED_CERT_IN_CHAIN", "sandbox_ca_bundle"},
		{"a proxy's certificate, of git", open, execution.Traffic{}, "fatal: unable to access: server certificate verification failed. CAfile: none", "sandbox_ca_bundle"},
		{"a proxy's certificate, of wget", open, execution.Traffic{}, "ERROR: The certificate of 'a.example' doesn't have a known issuer.", "sandbox_ca_bundle"},
		{"a certificate without a network", runtime.NetworkPolicy{}, execution.Traffic{}, "certificate verify failed", ""},
	} {
		had := execution.Network{Policy: c.network, Refused: c.traffic.Refused}
		if got := had.Hint(nil, []byte(c.said)); got != "" != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestTheHintOfANamedSandbox(t *testing.T) {
	const restart = "atoll sandbox restart dev"
	open := func(hosts ...string) runtime.NetworkPolicy {
		return runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: hosts}
	}
	refused := []execution.Refusal{{Host: "b.example", Rule: "allowed_hosts"}}
	lost := []byte("curl: (6) Could not resolve host: b.example")
	for name, c := range map[string]struct {
		had       execution.Network
		says, not string
	}{
		"no network":                        {execution.Network{}, "--allow HOST' opens it for a host, and --allow pypi for a package registry, then '" + restart, "one now"},
		"a network since it was made":       {execution.Network{Environment: open("b.example")}, "has one now: '" + restart, "env set"},
		"a host that is allowed since then": {execution.Network{Policy: open("a.example"), Environment: open("*.example"), Refused: refused}, "its environment's does: '" + restart, "env set"},
		"a host that is not allowed":        {execution.Network{Policy: open("a.example"), Environment: open("a.example"), Refused: refused}, "--allow b.example' does, then '" + restart, "environment's does"},
	} {
		c.had.Restart = restart
		if got := c.had.Hint(lost, nil); !strings.Contains(got, c.says) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestATailIsTheEndOfAStream(t *testing.T) {
	var tail execution.Tail
	var all []byte
	for n := range 3000 {
		piece := bytes.Repeat([]byte{byte('a' + n%26)}, n%7)
		tail.Add(piece)
		all = append(all, piece...)
	}
	if !bytes.Equal(tail, all[len(all)-execution.MaxHintTail:]) {
		t.Error("it is not the last bytes")
	}
	if tail.Add(all); !bytes.Equal(tail, all[len(all)-execution.MaxHintTail:]) {
		t.Error("of a long piece it is not the last bytes")
	}
}
