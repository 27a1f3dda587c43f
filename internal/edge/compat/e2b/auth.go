package e2b

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Clients send their API key to the REST API alone. What they call in a sandbox gets the
// access token that came with the sandbox: which sandbox it is for and whose key asked for
// it, under a sum that only this installation makes. It is good for as long as the key.

const (
	keyHeader     = "X-Api-Key"
	tokenHeader   = "X-Access-Token"
	trafficHeader = "E2b-Traffic-Access-Token" // calls about code contexts may have this one alone
	sandboxHeader = "E2b-Sandbox-Id"
)

// claimOf reads the access token of a request.
func (d *Handlers) claimOf(r *http.Request) (c signed.Claim, err error) {
	if token := r.Header.Get(tokenHeader); token != "" || hostOf(r) == nil || !isSigned(r) {
		return d.read(r, token, signed.ForServices)
	}
	return d.verify(r, hostOf(r))
}

// trafficOf reads the traffic token of a request.
func (d *Handlers) trafficOf(r *http.Request) (signed.Claim, error) {
	return d.read(r, r.Header.Get(trafficHeader), signed.ForPorts)
}

// anyClaimOf reads the access token of a request, or its traffic token if that is the only one.
func (d *Handlers) anyClaimOf(r *http.Request) (signed.Claim, error) {
	if r.Header.Get(tokenHeader) == "" && r.Header.Get(trafficHeader) != "" {
		return d.trafficOf(r)
	}
	return d.claimOf(r)
}

// read reads a token that was made for a purpose.
func (d *Handlers) read(r *http.Request, token string, of signed.Purpose) (c signed.Claim, err error) {
	at := hostOf(r)
	if c, err = d.tokens.Read(token, of); err != nil {
		return c, err
	}
	named := runtime.ID(r.Header.Get(sandboxHeader))
	if named != "" {
		named = d.known(string(named))
	}
	if at != nil && at.id != c.Sandbox {
		named = at.id
	}
	if named != "" && named != c.Sandbox {
		return c, fault.New(fault.Unauthorized, "the access token is not for the sandbox %.80q", named)
	}
	return c, nil
}

// byKey finds the caller of the REST API.
func (d *Handlers) byKey(r *http.Request) (tenant.Principal, error) {
	if hostOf(r) != nil {
		return tenant.Principal{}, fault.New(fault.Unauthorized, "this host has the services of one sandbox; E2B_API_URL is elsewhere")
	}
	keys := r.Header.Values(keyHeader)
	if len(keys) != 1 || keys[0] == "" {
		return tenant.Principal{}, fault.New(fault.Unauthorized, "missing API key: give the client a key of this server, %s…, as E2B_API_KEY", tenant.KeyPrefix)
	}
	return d.keys.Authenticate(r.Context(), keys[0])
}

// byAnyToken finds the caller of a service that clients call with the traffic token alone.
func (d *Handlers) byAnyToken(r *http.Request) (tenant.Principal, error) {
	c, err := d.anyClaimOf(r)
	if err != nil {
		return tenant.Principal{}, err
	}
	return d.tokens.Holder(r.Context(), c)
}

// byToken finds the caller of a sandbox's services.
func (d *Handlers) byToken(r *http.Request) (tenant.Principal, error) {
	c, err := d.claimOf(r)
	if err != nil {
		return tenant.Principal{}, err
	}
	return d.tokens.Holder(r.Context(), c)
}
