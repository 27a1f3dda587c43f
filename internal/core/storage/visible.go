package storage

import "github.com/atoll-run/atoll/internal/core/fault"

// Visible returns a folder of a connection as a key with grants could mount it. id is an id or slug.
func Visible(grants []Granted, id string, p Path) (Mount, error) {
	for _, g := range grants {
		if id == g.Connection.ID {
			id = g.Connection.Slug
		}
	}
	mounts, err := Resolve(grants, nil)
	if err != nil {
		return Mount{}, err
	}
	for _, m := range mounts {
		if m.Slug != id {
			continue
		}
		if p != "" && !p.Within(m.Path) {
			return m, fault.New(fault.Invalid, "path lies outside what this key may see of %q: name %q or a folder below it", m.Slug, m.Path)
		}
		if p != "" {
			m.Path = p
		}
		return m, nil
	}
	return Mount{}, fault.New(fault.NotFound, "connection %.80q not found: this key does not mount it", id)
}
