package e2b

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Clients make hosts of a port, a sandbox's id and a domain. So the id that they are told
// ends in a token, by which such a host is as much of a secret as a preview's, and the
// domain is that of previews. Two ports have the services that E2B has in a sandbox, all
// others lead to what listens on them.

const (
	envdPort = 49983
	codePort = 49999
)

// hosted is the sandbox that a request's host names.
type hosted struct {
	id     runtime.ID
	signed atomic.Pointer[signed.Claim] // what the request's signature allows, once that is known
}

type hostKey struct{}

func hostOf(r *http.Request) *hosted {
	at, _ := r.Context().Value(hostKey{}).(*hosted)
	return at
}

// Services is the request that one to a host of a sandbox's services stands for; nil for
// all others.
func (d *Handlers) Services(r *http.Request) *http.Request {
	label, _ := d.hosts.Base().Label(r.Host)
	id, port, ok := d.hosts.OfEvery(label)
	if !ok || port != envdPort && port != codePort || !strings.HasPrefix(r.URL.Path, "/") {
		return nil
	}
	in := r.Clone(context.WithValue(r.Context(), hostKey{}, &hosted{id: id}))
	in.URL.Path = Prefix + r.URL.Path
	if r.URL.RawPath != "" {
		in.URL.RawPath = Prefix + r.URL.RawPath
	}
	return in
}

// known is the id of the sandbox that clients know by text: with its token, or by our id.
func (d *Handlers) known(text string) runtime.ID {
	if id, _, ok := d.hosts.OfEvery("1-" + text); ok {
		return id
	}
	return runtime.ID(text)
}

// private reports whether a new sandbox's ports want its access token.
func (n *Network) private() bool { return n != nil && n.AllowPublic != nil && !*n.AllowPublic }

// Admit refuses a request to a port of a sandbox that wants its traffic token. No token reaches
// the program that listens.
func (d *Handlers) Admit(r *http.Request, sb *sandbox.Sandbox) error {
	asks := &http.Request{Header: http.Header{trafficHeader: r.Header.Values(trafficHeader)}}
	r.Header.Del(trafficHeader)
	if _, err := d.claimOf(&http.Request{Header: http.Header{tokenHeader: r.Header.Values(tokenHeader)}}); err == nil {
		r.Header.Del(tokenHeader) // another is of the program that listens
	}
	if !sandboxes.Private(sb) {
		return nil
	}
	return d.tokens.Admit(r.Context(), asks.Header.Get(trafficHeader), sb.ID)
}

const (
	signatureParam = "signature"
	expiryParam    = "signature_expiration"
)

// isSigned reports whether a request for a file has a signature for its token.
func isSigned(r *http.Request) bool {
	return r.URL.Path == Prefix+"/files" && r.URL.Query().Has(signatureParam)
}

// verify finds what the signature of a request allows. Clients make it: it is a sum of the
// access token, of one file, and of the time until which it holds.
func (d *Handlers) verify(r *http.Request, at *hosted) (signed.Claim, error) {
	if c := at.signed.Load(); c != nil {
		return *c, nil // a long request may end later
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return signed.Claim{}, signed.ErrSignature
	}
	for _, values := range query {
		if len(values) != 1 {
			return signed.Claim{}, signed.ErrSignature
		}
	}
	operation := "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	var until *string
	if query.Has(expiryParam) {
		until = new(query.Get(expiryParam))
	}
	c, err := d.tokens.Verify(r.Context(), at.id, &signed.Signed{Path: query.Get("path"), Operation: operation, User: query.Get("username"), Until: until, Signature: query.Get(signatureParam)})
	if err == nil {
		at.signed.Store(&c)
	}
	return c, err
}
