package sandbox

import (
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// CheckCaller says why p has no sandboxes.
func CheckCaller(p *tenant.Principal) error {
	switch {
	case p.Tenant.DisabledAt != nil:
		return fault.New(fault.Forbidden, "this tenant is disabled")
	case p.Environment.ID == "":
		return errNoEnvironment
	}
	return nil
}
