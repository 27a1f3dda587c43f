package admin

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
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

func (h *Handlers) redeliver(c *httpapi.Call) (out Redelivery, err error) {
	t, err := h.tenantOf(c)
	if err != nil {
		return out, err
	}
	traceID, err := execute.TraceIDOf(c)
	if err != nil {
		return out, err
	}
	e, err := h.Executions.Get(c.Context(), t.ID, traceID)
	if err != nil {
		return out, execute.Hidden(err, traceID)
	}
	if err := h.Webhooks.Redeliver(c.Context(), e); err != nil {
		return out, err
	}
	return Redelivery{traceID, string(execution.WebhookPending)}, nil
}

func (h *Handlers) tenantActivity(c *httpapi.Call) (out httpapi.Page[activity.Activity], err error) {
	t, err := h.tenantOf(c)
	if err != nil {
		return out, err
	}
	return h.Activity.Of(c, t.ID)
}

func (h *Handlers) tenantUsage(c *httpapi.Call) (out *usage.Usage, err error) {
	t, err := h.tenantOf(c)
	if err != nil {
		return out, err
	}
	p, err := h.Tenants.Plan(c.Context(), t.Plan)
	if err != nil {
		return out, err
	}
	return h.Usage.Of(c, t, p)
}
