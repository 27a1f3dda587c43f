package packages

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/outbound"
)

// connectTime bounds how long a connection to a host that the upstream names may
// take to be made.
const connectTime = 30 * time.Second

// transport makes the requests of a Mirror. The operator has chosen the upstreams'
// origins, so requests to them go wherever they are, through a proxy where the
// server's environment names one. What pages link to and answers redirect to, the
// upstream has chosen: those hosts are connected to without a proxy, which would
// connect where this process may not, and only at addresses that allow lets through.
type transport struct {
	origins map[string]bool
	own     *http.Transport
	others  *http.Transport
}

func newTransport(upstreams []*url.URL, allow outbound.List) *transport {
	origins := map[string]bool{}
	for _, u := range upstreams {
		origins[origin(u)] = true
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.ResponseHeaderTimeout = fetchTime
	own.DisableCompression = true // files pass as they are
	others := own.Clone()
	others.Proxy = nil
	others.DialContext = func(ctx context.Context, network, remote string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return allow.Dial(ctx, nil, network, remote)
	}
	return &transport{origins: origins, own: own, others: others}
}

// RoundTrip implements http.RoundTripper. Each redirect comes here too.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.origins[origin(r.URL)] {
		return t.own.RoundTrip(r)
	}
	return t.others.RoundTrip(r)
}

// CloseIdleConnections closes the connections that are kept for later requests.
func (t *transport) CloseIdleConnections() {
	t.own.CloseIdleConnections()
	t.others.CloseIdleConnections()
}

// origin is the scheme, host and port of a URL, in a form that can be compared.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// refused reports whether a request failed because an address may not be
// connected to.
func refused(err error) bool {
	_, ok := errors.AsType[*net.AddrError](err)
	return ok
}
