package tenant

import (
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// bindingRow is how a binding is stored. A name is never given another meaning.
type bindingRow struct {
	Hosts       []string `json:"hosts"`
	Placeholder string   `json:"placeholder"`
}

// boundPlace is what secrets are sealed for of which some are bound to hosts, so
// that one cannot be unbound, and a program shown it, by a row without bindings;
// with another prefix it is what the bindings themselves are sealed for.
func boundPlace(place string) string    { return "bound/" + place }
func bindingsPlace(place string) string { return "bindings/" + place }

// sealSecrets seals the secret variables of an environment or a key, and which of
// them are bound to which hosts, for a place.
func (s *Store) sealSecrets(secrets map[string]string, bound map[string]tenant.Binding, place string) (sealed, bindings []byte, err error) {
	if err := sqldb.CheckMap(secrets); err != nil || len(secrets) == 0 {
		return nil, nil, err
	}
	if len(bound) > 0 {
		rows := make(map[string]bindingRow, len(bound))
		for name, b := range bound {
			rows[name] = bindingRow(b)
		}
		plain, err := json.Marshal(rows)
		if err != nil {
			return nil, nil, err
		}
		bindings, place = s.db.Seal.Seal(plain, bindingsPlace(place)), boundPlace(place)
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, nil, err
	}
	return s.db.Seal.Seal(plain, place), bindings, nil
}

// openSecrets is the way back.
func (s *Store) openSecrets(sealed, bindings []byte, place string) (secrets map[string]string, bound map[string]tenant.Binding, err error) {
	if len(sealed) == 0 {
		return nil, nil, nil
	}
	if len(bindings) > 0 {
		if bound, err = s.bindingsOf(bindings, bindingsPlace(place)); err != nil {
			return nil, nil, err
		}
		place = boundPlace(place)
	}
	plain, err := s.db.Seal.Open(sealed, place)
	if err != nil {
		return nil, nil, err
	}
	secrets, err = sqldb.MapOf(string(plain))
	return secrets, bound, err
}

func (s *Store) bindingsOf(sealed []byte, place string) (map[string]tenant.Binding, error) {
	plain, err := s.db.Seal.Open(sealed, place)
	if err != nil {
		return nil, err
	}
	var rows map[string]bindingRow
	if err := json.Unmarshal(plain, &rows); err != nil {
		return nil, err
	}
	bound := make(map[string]tenant.Binding, len(rows))
	for name, r := range rows {
		bound[name] = tenant.Binding(r)
	}
	return bound, nil
}
