package admin

import (
	"context"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// pathParam documents a part of a path, if the path has it.
func pathParam(path, part, doc string) []httpapi.Param {
	if !strings.Contains(path, "{"+part+"}") {
		return nil
	}
	return []httpapi.Param{{Name: part, In: httpapi.InPath, Doc: doc}}
}

// named returns the part of the path that names something. What can be no name is not
// looked for.
func named(c *httpapi.Call, part string) (string, error) {
	name := c.Path(part)
	if !tenant.Name.MatchString(name) {
		return "", fault.New(fault.NotFound, "%s %.80q not found", part, name)
	}
	return name, nil
}

// inTenant returns the names in the path of the tenant and of something that it has.
func inTenant(c *httpapi.Call, part string) (tenantName, name string, err error) {
	if tenantName, err = named(c, "tenant"); err == nil {
		name, err = named(c, part)
	}
	return tenantName, name, err
}

// tenantOf returns the tenant in the path.
func (h *Handlers) tenantOf(c *httpapi.Call) (tenant.Tenant, error) {
	name, err := named(c, "tenant")
	if err != nil {
		return tenant.Tenant{}, err
	}
	return h.Tenants.Tenant(c.Context(), name)
}

// recordedOf is tenantOf, and finds deleted tenants too, by their ids.
func (h *Handlers) recordedOf(c *httpapi.Call) (tenant.Tenant, error) {
	name, err := named(c, "tenant")
	if err != nil {
		return tenant.Tenant{}, err
	}
	return h.Tenants.Recorded(c.Context(), name)
}

// lists serves a list of what a tenant has.
func lists[T, W any](find func(ctx context.Context, tenant string) ([]T, error), id func(T) string, wire func(T) W) httpapi.Endpoint {
	return httpapi.Returns(func(c *httpapi.Call) (out httpapi.Page[W], err error) {
		name, err := named(c, "tenant")
		if err != nil {
			return out, err
		}
		all, err := find(c.Context(), name)
		if err != nil {
			return out, err
		}
		return httpapi.PageOf(c, all, id, wire)
	})
}

// gets serves one of what a tenant has, by the part of the path that names it.
func gets[T, W any](part string, find func(ctx context.Context, tenant, name string) (T, error), wire func(T) W) httpapi.Endpoint {
	return httpapi.Returns(func(c *httpapi.Call) (out W, err error) {
		in, name, err := inTenant(c, part)
		if err != nil {
			return out, err
		}
		v, err := find(c.Context(), in, name)
		return wire(v), err
	})
}

// deletes removes one of what a tenant has.
func deletes(part string, remove func(ctx context.Context, tenant, name string) error) httpapi.Endpoint {
	return httpapi.Does(func(c *httpapi.Call) error {
		in, name, err := inTenant(c, part)
		if err != nil {
			return err
		}
		return remove(c.Context(), in, name)
	})
}

// parseTime reads a time in a body.
func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, httpapi.Invalid("%s must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z", field)
	}
	return t.UTC(), nil
}
