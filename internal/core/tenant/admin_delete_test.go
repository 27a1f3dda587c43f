package tenant_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestNothingIsMadeOfATenantThatIsBeingDeleted checks that a tenant being deleted rejects new
// resources. Resources created after the records are deleted would stay, including secrets.
func TestNothingIsMadeOfATenantThatIsBeingDeleted(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	_, _, err := w.CreateTenantWithEnvironment(ctx, "key_1", "acme", "main", tenant.TenantChange{})
	w.must(err)
	_, _, err = w.CreateKey(ctx, "key_1", "acme", "main", "first", tenant.KeyChange{})
	w.must(err)
	_, err = w.DeleteTenant(ctx, "key_1", "acme")
	w.must(err)
	for what, make := range map[string]func() error{
		"an environment": func() error {
			_, err := w.CreateEnvironment(ctx, "key_1", "acme", "other", tenant.EnvironmentChange{})
			return err
		},
		"a changed environment": func() error {
			_, err := w.ChangeEnvironment(ctx, "acme", "main", tenant.EnvironmentChange{})
			return err
		},
		"a key": func() error {
			_, _, err := w.CreateKey(ctx, "key_1", "acme", "main", "second", tenant.KeyChange{})
			return err
		},
		"a changed key": func() error {
			_, err := w.ChangeKey(ctx, "acme", "first", tenant.KeyChange{})
			return err
		},
		"a connection": func() error {
			_, err := w.CreateConnection(ctx, "acme", "", storage.Connection{Slug: "data", Kind: storage.Volume})
			return err
		},
		"a template": func() error {
			_, err := w.PutTemplate(ctx, "key_1", "acme", "tpl", tenant.DefaultPublic)
			return err
		},
	} {
		if err := make(); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
}
