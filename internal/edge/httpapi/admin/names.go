package admin

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// inTenant returns the names in the path of the tenant and of something that it has.
func inTenant(c *httpapi.Call, part string) (tenantName, name string, err error) {
	if tenantName, err = c.NameIn("tenant"); err == nil {
		name, err = c.NameIn(part)
	}
	return tenantName, name, err
}

// lists serves a list of what a tenant has.
func lists[T, W any](find func(ctx context.Context, tenant string) ([]T, error), id func(T) string, wire func(T) W) httpapi.Endpoint {
	return httpapi.Returns(func(c *httpapi.Call) (out httpapi.Page[W], err error) {
		name, err := c.NameIn("tenant")
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
