package model

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Use returns a model that a tenant may use, by its id or name, ready to be asked, and
// its record.
func (c *Catalog) Use(ctx context.Context, id tenant.ID, idOrName string) (Model, *Record, error) {
	r, err := c.Find(ctx, id, idOrName)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.cfg.Open(r)
	return m, &r, err
}
