package volume

import (
	"errors"
	"os"
	"path/filepath"
)

// Delete deletes all volumes of a tenant. Nothing of it may be mounted.
func (s Store) Delete(tenant string) error {
	if !filepath.IsLocal(tenant) || tenant == "." || filepath.Base(tenant) != tenant {
		return errors.New("volumes: " + tenant + " is no tenant")
	}
	return os.RemoveAll(filepath.Join(s.Dir, tenant))
}
