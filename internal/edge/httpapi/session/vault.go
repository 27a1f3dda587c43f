package session

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// vaultsOf are the vaults that a session is given: the tenant's own, which are in use.
func (h *Handlers) vaultsOf(c *httpapi.Call, in []wire.Text) (out []vault.ID, err error) {
	if len(in) > vault.MaxOfSession {
		return nil, httpapi.Invalid("vault_ids must be at most %d", vault.MaxOfSession)
	}
	for i, text := range in {
		id, path := vault.ID(text), fmt.Sprintf("vault_ids[%d]", i)
		if slices.Contains(out, id) {
			return nil, httpapi.Invalid("%s %q is there twice", path, text)
		}
		none := fault.New(fault.NotFound, "%s: there is no such vault", path)
		if !id.Valid() {
			return nil, none
		}
		v, err := h.Vaults.Get(c.Context(), c.Caller.Tenant.ID, id)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return nil, none
		case err != nil:
			return nil, err
		case v.Archived():
			return nil, fault.New(fault.Conflict, "%s: the vault is archived", path)
		}
		out = append(out, id)
	}
	return out, nil
}

func idsOf(vaults []vault.ID) []string {
	return httpapi.Each(vaults, func(id vault.ID) string { return string(id) })
}
