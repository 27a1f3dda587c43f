package app

import (
	"slices"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
)

// roles is a set of roles.
type roles uint8

const (
	onGateway roles = 1 << iota
	onExecutor
	withoutGateway  // an executor in a process of its own
	withoutExecutor // a gateway in a process of its own

	onBoth = onGateway | onExecutor
)

// rolesOf returns the roles of a server with the setting role.
func rolesOf(c *config.Config) roles {
	switch c.Role {
	case config.RoleGateway:
		return onGateway | withoutExecutor
	case config.RoleExecutor:
		return onExecutor | withoutGateway
	}
	return onBoth
}

// has reports whether the sets have a role in common.
func (r roles) has(some roles) bool { return r&some != 0 }

// row is a module and the roles that contain it.
type row struct {
	roles roles
	module.Module
}

// optional returns a module, or nil if no role in r contains it.
func optional[T any](r, in roles, m *T) *T {
	if r.has(in) {
		return m
	}
	return nil
}

// choose returns the modules of the rows that the roles in r contain. Each module keeps the needs
// that are among them.
func choose(r roles, rows []row) []module.Module {
	names := map[string]bool{}
	for _, row := range rows {
		names[row.Name] = r.has(row.roles)
	}
	var out []module.Module
	for _, row := range rows {
		if !r.has(row.roles) {
			continue
		}
		m := row.Module
		m.Needs = slices.DeleteFunc(slices.Clone(m.Needs), func(name string) bool {
			chosen, known := names[name]
			return known && !chosen // New reports an unknown name
		})
		out = append(out, m)
	}
	return out
}
