package e2b

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
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

	// privateEnv is the variable of a sandbox whose ports want the access token.
	privateEnv = "E2B_PRIVATE_TRAFFIC"
)

// hosted is the sandbox that a request's host names.
type hosted struct {
	id     runtime.ID
	signed atomic.Pointer[claim] // what the request's signature allows, once that is known
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

func isPrivate(sb *sandbox.Sandbox) bool { return sb.Env[privateEnv] == "true" }

// Admit refuses a request to a port of a sandbox that wants its traffic token. No token reaches
// the program that listens.
func (d *Handlers) Admit(r *http.Request, sb *sandbox.Sandbox) error {
	asks := &http.Request{Header: http.Header{trafficHeader: r.Header.Values(trafficHeader)}}
	r.Header.Del(trafficHeader)
	if _, err := d.claimOf(&http.Request{Header: http.Header{tokenHeader: r.Header.Values(tokenHeader)}}); err == nil {
		r.Header.Del(tokenHeader) // another is of the program that listens
	}
	if !isPrivate(sb) {
		return nil
	}
	c, err := d.trafficOf(asks)
	if err == nil && c.Sandbox != sb.ID {
		err = fault.New(fault.Forbidden, "the token is for another sandbox")
	}
	if err == nil {
		_, err = d.keys.Holder(r.Context(), c.Tenant, c.Key)
	}
	if fault.KindOf(err) == fault.Unauthorized {
		err = fault.Wrap(fault.Forbidden, err, "the token is not valid")
	}
	return err
}

const (
	signatureParam = "signature"
	expiryParam    = "signature_expiration"
)

// isSigned reports whether a request for a file has a signature for its token.
func isSigned(r *http.Request) bool {
	return r.URL.Path == Prefix+"/files" && r.URL.Query().Has(signatureParam)
}

// signed finds what the signature of a request allows. Clients make it: it is a sum of the
// access token, of one file, and of the time until which it holds. The token is of one of
// the keys that the sandbox can be used with.
func (d *Handlers) signed(r *http.Request, at *hosted) (claim, error) {
	if c := at.signed.Load(); c != nil {
		return *c, nil // a long request may end later
	}
	refusal := fault.New(fault.Unauthorized, "the signature is not valid: make the URL again")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return claim{}, refusal
	}
	for _, values := range query {
		if len(values) != 1 {
			return claim{}, refusal
		}
	}
	operation := "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	until := ""
	if query.Has(expiryParam) {
		n, err := strconv.ParseInt(query.Get(expiryParam), 10, 64)
		if err != nil {
			return claim{}, refusal
		}
		if time.Now().Unix() >= n {
			return claim{}, fault.New(fault.Unauthorized, "the signature has expired: make the URL again")
		}
		until = ":" + query.Get(expiryParam)
	}
	owner, keys, err := d.holders.Holders(r.Context(), at.id)
	if err != nil {
		return claim{}, err
	}
	given := []byte(query.Get(signatureParam))
	for _, key := range keys {
		c := claim{Sandbox: at.id, Tenant: owner, Key: key}
		token, err := d.tokenOf(c, tokenPurpose)
		if err != nil {
			return claim{}, err
		}
		sum := sha256.Sum256([]byte(query.Get("path") + ":" + operation + ":" + query.Get("username") + ":" + token + until))
		if subtle.ConstantTimeCompare(given, []byte("v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))) == 1 {
			at.signed.Store(&c)
			return c, nil
		}
	}
	return claim{}, refusal
}
