package tenant

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// The rules of an environment hold for its sandboxes. In a session they hold for the server as
// well: for what it fetches, searches and asks for an agent.

// says reports whether an environment says anything of the network: one without a profile and
// without rules leaves what the server does as it is.
func (p *Principal) says() bool {
	return p.Environment.Profile != "" || !p.Environment.Permissions.Network.Blocked()
}

func (p *Principal) network() runtime.NetworkPolicy {
	return p.Tenant.Permitted(p.Environment.Permissions).Network
}

// Fetches refuses a URL that the network of p's environment does not allow.
func (p *Principal) Fetches(u *url.URL) error {
	if !p.says() || p.network().Reaches(u.Hostname(), port(u)) {
		return nil
	}
	return fault.New(fault.Invalid, "the network of the environment does not allow %s", u.Host)
}

// Asks refuses an MCP server that p's environment does not allow.
func (p *Principal) Asks(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return fault.New(fault.Invalid, "it is not a URL")
	}
	if !p.says() || p.Environment.AllowMCP || p.network().Reaches(u.Hostname(), port(u)) {
		return nil
	}
	return fault.New(fault.Forbidden, "the network of environment %s does not allow the MCP server at %s: add the host to allowed_hosts, or set allow_mcp_servers", p.Environment.Name, u.Host)
}

// Starts refuses to start an MCP server in a sandbox where p's environment does not allow any.
// Such a server has no more rights than the sandbox's programs.
func (p *Principal) Starts() error {
	if !p.says() || p.Environment.AllowMCP {
		return nil
	}
	return fault.New(fault.Forbidden, "environment %s allows no MCP servers in its sandboxes: set allow_mcp_servers", p.Environment.Name)
}

// Searches refuses to search where the network of p's environment does not allow any host: a
// search tells others what is looked for, and brings words of any page.
func (p *Principal) Searches() error {
	if n := p.network(); !p.says() || n.Any() {
		return nil
	}
	return fault.New(fault.Forbidden, "the environment's network does not allow every host, so web search is off")
}

func port(u *url.URL) uint16 {
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(n)
	}
	if strings.EqualFold(u.Scheme, "http") {
		return 80
	}
	return 443
}
