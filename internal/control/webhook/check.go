package webhook

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxURL is the most bytes of a URL.
const maxURL = 2048

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
	case u.Scheme != "https" && !(u.Scheme == "http" && c.allow.Loopback(ctx, u.Hostname())):
		return fault.New(fault.Invalid, "webhook_url must begin with https://; with --dev the tenant dev may use http://127.0.0.1")
	case u.Opaque != "" || u.Hostname() == "":
		return fault.New(fault.Invalid, "webhook_url must name a host, such as https://example.com/hook")
	case u.User != nil:
		return fault.New(fault.Invalid, "webhook_url must not contain a user name or password")
	case strings.Contains(raw, "#"):
		return fault.New(fault.Invalid, "webhook_url must not have a fragment (#)")
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fault.New(fault.Invalid, "the port of webhook_url must be 1 to 65535")
		}
	}
	return c.allow.Check(ctx, c.cfg.Resolver, "webhook_url", u.Hostname())
}
