package execution_test

import (
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
	} {
		if got := execution.NetworkHint(c.network, c.traffic, nil, []byte(c.said)); got != "" != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
