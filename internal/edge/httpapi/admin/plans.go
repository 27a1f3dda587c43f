package admin

import (
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) listPlans(c *httpapi.Call) (out httpapi.Page[Plan], err error) {
	all, err := h.Tenants.Plans(c.Context())
	if err != nil {
		return out, err
	}
	return httpapi.PageOf(c, all, func(p tenant.Plan) string { return p.Name }, planOf)
}

func (h *Handlers) getPlan(c *httpapi.Call) (out Plan, err error) {
	name, err := c.NameIn("plan")
	if err != nil {
		return out, err
	}
	p, err := h.Tenants.Plan(c.Context(), name)
	return planOf(p), err
}

func (h *Handlers) putPlan(c *httpapi.Call, in *PlanBounds) (out Plan, err error) {
	name, err := c.NameIn("plan")
	if err != nil {
		return out, err
	}
	p, err := h.Tenants.PutPlan(c.Context(), c.Caller.Key.ID, in.domain(name))
	return planOf(p), err
}

func (h *Handlers) deletePlan(c *httpapi.Call) error {
	name, err := c.NameIn("plan")
	if err != nil {
		return err
	}
	return h.Tenants.DeletePlan(c.Context(), c.Caller.Key.ID, name)
}
