package admin

import (
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) getCaps(c *httpapi.Call) (out Caps, err error) {
	caps, err := h.Caps.Caps(c.Context())
	return capsOf(caps), err
}

func (h *Handlers) changeCaps(c *httpapi.Call, in *CapsChange) (out Caps, err error) {
	for name, n := range map[string]*int64{"tenant_daily": in.TenantDaily, "agent_hourly": in.AgentHourly} {
		if n != nil && (*n < 0 || *n > tenant.MaxCap) {
			return out, httpapi.Invalid("%s must be between 0, which stops every call, and %d", name, tenant.MaxCap)
		}
	}
	caps, err := h.Caps.Change(c.Context(), c.Caller.Key.ID, in.TenantDaily, in.AgentHourly)
	return capsOf(caps), err
}
