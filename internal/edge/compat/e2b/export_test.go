package e2b

import (
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Token makes the access token for a sandbox.
func Token(d *Handlers, p *tenant.Principal, id runtime.ID) (string, error) {
	return d.tokens.Token(p, id, signed.ForServices)
}

// Traffic makes the traffic token for a sandbox.
func Traffic(d *Handlers, p *tenant.Principal, id runtime.ID) (string, error) {
	return d.tokens.Token(p, id, signed.ForPorts)
}
