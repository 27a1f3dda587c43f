package admin

import (
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) createConnection(c *httpapi.Call, in *NewConnection) (out Connection, err error) {
	name, err := c.NameIn("tenant")
	if err != nil {
		return out, err
	}
	prefix, connection := in.domain()
	made, err := h.Tenants.CreateConnection(c.Context(), name, prefix, connection)
	return connectionOf(made), err
}

func (h *Handlers) changeConnection(c *httpapi.Call, in *ConnectionChange) (out Connection, err error) {
	name, connection, err := inTenant(c, "connection")
	if err != nil {
		return out, err
	}
	v, err := h.Tenants.ChangeConnection(c.Context(), name, connection, in.domain())
	return connectionOf(v), err
}

func (h *Handlers) listGrants(c *httpapi.Call) (out httpapi.Page[Grant], err error) {
	in, name, err := inTenant(c, "connection")
	if err != nil {
		return out, err
	}
	all, err := h.Tenants.Grants(c.Context(), in, name)
	if err != nil {
		return out, err
	}
	return httpapi.PageOf(c, all, func(v storage.Grant) string { return v.ID }, grantOf)
}

func (h *Handlers) createGrant(c *httpapi.Call, in *NewGrant) (out Grant, err error) {
	name, connection, err := inTenant(c, "connection")
	if err != nil {
		return out, err
	}
	to := tenant.GrantTo{ReadOnly: in.ReadOnly != nil && *in.ReadOnly}
	for _, f := range []struct{ from, to *string }{{in.Environment, &to.Environment}, {in.Key, &to.Key}, {in.Prefix, &to.Prefix}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	v, err := h.Tenants.Grant(c.Context(), name, connection, to)
	return grantOf(v), err
}

func (h *Handlers) deleteGrant(c *httpapi.Call) error {
	in, name, err := inTenant(c, "connection")
	if err != nil {
		return err
	}
	id, err := c.NameIn("grant")
	if err != nil {
		return err
	}
	return h.Tenants.Ungrant(c.Context(), in, name, id)
}
