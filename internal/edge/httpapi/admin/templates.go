package admin

import "github.com/atoll-run/atoll/internal/edge/httpapi"

func (h *Handlers) putTemplate(c *httpapi.Call, in *TemplateChange) (out Template, err error) {
	name, template, err := inTenant(c, "template")
	if err != nil {
		return out, err
	}
	network, err := in.domain()
	if err != nil {
		return out, err
	}
	t, err := h.Tenants.PutTemplate(c.Context(), c.Caller.Key.ID, name, template, network)
	return templateOf(t), err
}

func (h *Handlers) deleteTemplate(c *httpapi.Call) error {
	name, template, err := inTenant(c, "template")
	if err != nil {
		return err
	}
	return h.Tenants.DeleteTemplate(c.Context(), c.Caller.Key.ID, name, template)
}
