package e2b

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

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

	tokenPurpose = "e2b-sandbox"
	// A traffic token is for the ports of a sandbox, so clients give it to other programs. It does
	// not open the sandbox's own services; clients manage code contexts with it, and run no code.
	trafficPurpose = "e2b-traffic"
	tokenSum       = 16      // bytes of a sum
	maxToken       = 4 << 10 // characters
)

// claim is what an access token allows.
type claim struct {
	Sandbox runtime.ID `json:"s"`
	Tenant  tenant.ID  `json:"t"`
	Key     string     `json:"k"` // id
}

// token makes the access token for a sandbox.
func (d *Handlers) token(p *tenant.Principal, id runtime.ID) (string, error) {
	return d.tokenOf(claim{Sandbox: id, Tenant: p.Tenant.ID, Key: p.Key.ID}, tokenPurpose)
}

// traffic makes the traffic token for a sandbox.
func (d *Handlers) traffic(p *tenant.Principal, id runtime.ID) (string, error) {
	return d.tokenOf(claim{Sandbox: id, Tenant: p.Tenant.ID, Key: p.Key.ID}, trafficPurpose)
}

func (d *Handlers) tokenOf(c claim, purpose string) (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(data, d.signer.Sum(data, purpose)...)), nil
}

// claimOf reads the access token of a request.
func (d *Handlers) claimOf(r *http.Request) (c claim, err error) {
	if token := r.Header.Get(tokenHeader); token != "" || hostOf(r) == nil || !isSigned(r) {
		return d.read(r, token, tokenPurpose)
	}
	return d.signed(r, hostOf(r))
}

// trafficOf reads the traffic token of a request.
func (d *Handlers) trafficOf(r *http.Request) (claim, error) {
	return d.read(r, r.Header.Get(trafficHeader), trafficPurpose)
}

// anyClaimOf reads the access token of a request, or its traffic token if that is the only one.
func (d *Handlers) anyClaimOf(r *http.Request) (claim, error) {
	if r.Header.Get(tokenHeader) == "" && r.Header.Get(trafficHeader) != "" {
		return d.trafficOf(r)
	}
	return d.claimOf(r)
}

// read reads a token that was made for a purpose.
func (d *Handlers) read(r *http.Request, token, purpose string) (c claim, err error) {
	at := hostOf(r)
	if token == "" {
		return c, fault.New(fault.Unauthorized, "missing access token: connect to the sandbox again, by its id, for one")
	}
	refusal := fault.New(fault.Unauthorized, "the access token is not valid: connect to the sandbox again, by its id, for another")
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return c, refusal
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < tokenSum {
		return c, refusal
	}
	data, sum := data[:len(data)-tokenSum], data[len(data)-tokenSum:]
	if !d.signer.Check(data, purpose, sum) || json.Unmarshal(data, &c) != nil {
		return c, refusal
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
	return d.keys.Holder(r.Context(), c.Tenant, c.Key)
}

// byToken finds the caller of a sandbox's services.
func (d *Handlers) byToken(r *http.Request) (tenant.Principal, error) {
	c, err := d.claimOf(r)
	if err != nil {
		return tenant.Principal{}, err
	}
	return d.keys.Holder(r.Context(), c.Tenant, c.Key)
}
