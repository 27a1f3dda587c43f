package outbound

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

type tenantKey struct{}

// For returns a context of work that is done for a tenant.
func For[T ~string](ctx context.Context, tenant T) context.Context {
	return context.WithValue(ctx, tenantKey{}, string(tenant))
}

// OpenLoopback lets work for one tenant reach this machine's loopback by its plain names:
// localhost, 127.0.0.1 and [::1]. It is for development. Another name that resolves to loopback
// stays refused, because a stranger's DNS may answer so.
func (l List) OpenLoopback(tenant string) { l.live.loopback.Store(&tenant) }

// Loopback reports whether host is this machine's loopback, opened for the tenant of ctx.
func (l List) Loopback(ctx context.Context, host string) bool {
	if l.live == nil {
		return false
	}
	tenant := l.live.loopback.Load()
	if tenant == nil || *tenant == "" || ctx.Value(tenantKey{}) != *tenant {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// Transport does all requests of rt for one tenant.
func Transport[T ~string](rt http.RoundTripper, tenant T) http.RoundTripper {
	return owned{rt, string(tenant)}
}

type owned struct {
	http.RoundTripper
	tenant string
}

// RoundTrip implements http.RoundTripper.
func (o owned) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.RoundTripper.RoundTrip(r.WithContext(For(r.Context(), o.tenant)))
}
