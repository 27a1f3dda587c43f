package admin

import (
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) createKey(c *httpapi.Call, in *NewKey) (out Key, err error) {
	name, err := c.NameIn("tenant")
	if err != nil {
		return out, err
	}
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	environment := ""
	if in.Environment != nil {
		if environment = *in.Environment; !tenant.Name.MatchString(environment) {
			return out, httpapi.Invalid("environment: not found in this tenant")
		}
	}
	k, secret, err := h.Tenants.CreateKey(c.Context(), c.Caller.Key.ID, name, environment, *in.Name, change)
	if err != nil {
		return out, err
	}
	out = keyOf(k)
	out.Key = secret
	return out, nil
}

func (h *Handlers) changeKey(c *httpapi.Call, in *KeyChange) (out Key, err error) {
	name, key, err := inTenant(c, "key")
	if err != nil {
		return out, err
	}
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	k, err := h.Tenants.ChangeKey(c.Context(), name, key, change)
	return keyOf(k), err
}

func (h *Handlers) revokeKey(c *httpapi.Call) (out Key, err error) {
	name, key, err := inTenant(c, "key")
	if err != nil {
		return out, err
	}
	k, err := h.Tenants.RevokeKey(c.Context(), c.Caller.Key.ID, name, key)
	return keyOf(k), err
}
