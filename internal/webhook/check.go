package webhook

import (
	"context"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/address"
	"github.com/atoll-run/atoll/internal/fault"
)

const (
	// maxURL is the most bytes of a URL.
	maxURL = 2048
	// lookupTimeout bounds what a name may hold up its caller. A name that
	// cannot be resolved now is accepted: it may be later.
	lookupTimeout = 2 * time.Second
)

// CheckURL returns an Invalid fault, which says what to change, unless raw is a
// URL that messages may be sent to.
func (c *Client) CheckURL(ctx context.Context, raw string) error {
	if len(raw) > maxURL {
		return fault.New(fault.Invalid, "webhook_url must be at most %d bytes", maxURL)
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] > '~' {
			return fault.New(fault.Invalid, "webhook_url must be printable ASCII without spaces; percent-encode everything else")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fault.New(fault.Invalid, "webhook_url must be a URL such as https://example.com/hook")
	}
	switch {
	case u.Scheme != "https":
		return fault.New(fault.Invalid, "webhook_url must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return fault.New(fault.Invalid, "webhook_url must name a host, such as https://example.com/hook")
	case u.User != nil:
		return fault.New(fault.Invalid, "webhook_url must not hold a user name or password")
	case strings.Contains(raw, "#"):
		return fault.New(fault.Invalid, "webhook_url must not have a fragment (#)")
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fault.New(fault.Invalid, "the port of webhook_url must be 1 to 65535")
		}
	}
	return c.checkHost(ctx, u.Hostname())
}

func (c *Client) checkHost(ctx context.Context, host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if !c.allow.address(false, a) {
			return fault.New(fault.Invalid, "webhook_url must not lead to a private, local or reserved address")
		}
		return nil
	}
	name := address.Hostname(host)
	if name == "" {
		return fault.New(fault.Invalid, "the host of webhook_url must be a host name (international ones in their xn-- form) or a plain IP address")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := c.cfg.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	for _, a := range found {
		if !c.allow.address(c.allow.host(name), a) {
			return fault.New(fault.Invalid, "the host of webhook_url must not resolve to a private, local or reserved address")
		}
	}
	return nil
}
