package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// connectTime bounds how long a connection to a host that a registry names may take to
// be made.
const connectTime = 30 * time.Second

// reach makes the requests for an image of a registry. The registry itself is connected
// to wherever it is, since its name was chosen by who allowed it. Where it leads, by
// redirects and for its tokens, it has chosen: those hosts are connected to at public
// addresses and at those that allow opens.
type reach struct {
	registry string // host, with its port
	allow    outbound.List
	own      http.RoundTripper
	others   *http.Transport // without a proxy
}

func newReach(registry string, allow outbound.List) *reach {
	others := http.DefaultTransport.(*http.Transport).Clone()
	others.Proxy = nil
	others.DialContext = func(ctx context.Context, network, remote string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return allow.Dial(ctx, nil, network, remote)
	}
	return &reach{registry: registry, allow: allow, own: remote.DefaultTransport, others: others}
}

// RoundTrip implements http.RoundTripper. Each redirect comes here too.
func (t *reach) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == t.registry {
		return t.own.RoundTrip(r)
	}
	proxy, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, err
	}
	if proxy != nil { // it connects to the host, and its operator says where it may
		if err := t.allow.Check(r.Context(), nil, "what the registry "+t.registry+" redirects to", r.URL.Hostname()); err != nil {
			return nil, err
		}
		return t.own.RoundTrip(r)
	}
	res, err := t.others.RoundTrip(r)
	if _, refused := errors.AsType[*net.AddrError](err); refused {
		return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("the registry %s redirects to %s, at an address that is private, reserved or this server's own; image_pull_redirect_allow of its operator would open it", t.registry, r.URL.Host))
	}
	return res, err
}

func (t *reach) close() error {
	t.others.CloseIdleConnections()
	return nil
}
