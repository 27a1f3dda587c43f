package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Setup is what an installation begins with.
type Setup struct {
	Store Store
	// DevKey authenticates the tenant Dev; "" for no key.
	DevKey string
	// Environment is the configured one: image, limits, variables. The tenant
	// Dev has it under the name "default".
	Environment Environment
}

// setupActor is who made what every installation begins with.
const setupActor = "setup"

// DefaultName is what the first environment and template of the tenant Dev are
// called.
const DefaultName = "default"

// Run brings the store to where every start begins: the tenant Operator, and the tenant Dev on
// the enterprise plan with its environment and key. It may run at every start and in several
// processes at once. AdminKey makes the key that administers.
func (s Setup) Run(ctx context.Context) error {
	if _, _, err := s.tenant(ctx, Operator); err != nil {
		return fmt.Errorf("set up the tenant %s: %w", Operator, err)
	}
	if err := s.dev(ctx); err != nil {
		return fmt.Errorf("set up the tenant %s: %w", Dev, err)
	}
	return nil
}

// administers reports whether a key can be used to administer, as far as this
// machine's clock says.
func administers(k Key) bool {
	return slices.Contains(k.Scopes, ScopeAdmin) && k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(time.Now()))
}

// tenant returns the tenant of a name, which it makes when there is none.
func (s Setup) tenant(ctx context.Context, name string) (t Tenant, made bool, err error) {
	t, err = s.Store.Tenant(ctx, name)
	if fault.KindOf(err) != fault.NotFound || err == nil {
		return t, false, err
	}
	t = Tenant{
		ID: NewID("ten"), Name: name, Plan: "enterprise", Tier: Standard, SandboxEnabled: true,
		AuditDays: int(audit.DefaultRetention / (24 * time.Hour)), CreatedAt: now(),
	}
	err = s.Store.CreateTenant(ctx, t, t.made(setupActor)...)
	if err != nil && fault.KindOf(err) != fault.Conflict {
		return Tenant{}, false, err
	}
	made = err == nil
	t, err = s.Store.Tenant(ctx, name)
	return t, made, err
}

func (s Setup) dev(ctx context.Context) error {
	t, made, err := s.tenant(ctx, Dev)
	if err != nil {
		return err
	}
	if made { // so that the agent tool can be tried at once
		opted := Template{Tenant: t.ID, Name: DefaultName, Sandbox: InternalOnly}
		if err := s.Store.PutTemplate(ctx, opted, templateEvent(opted, setupActor, "none", told(opted.Sandbox))); err != nil {
			return err
		}
	}
	e, err := s.environment(ctx, t.ID)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if err := s.devKeys(ctx, t.ID, e.ID); err != nil {
		return fmt.Errorf("development key: %w", err)
	}
	return nil
}

// environment makes the configured environment, or makes it what is configured
// now.
func (s Setup) environment(ctx context.Context, id ID) (Environment, error) {
	want := s.Environment
	want.Tenant, want.Name = id, DefaultName
	if err := checkLimits(want.Limits); err != nil {
		return Environment{}, err
	}
	have, err := s.Store.Environment(ctx, id, DefaultName)
	switch {
	case err == nil:
		want.ID, want.CreatedAt = have.ID, have.CreatedAt
		// No setting says these; who set them by the API keeps them.
		want.Permissions, want.Profile, want.Timeout = have.Permissions, have.Profile, have.Timeout
		return want, s.Store.UpdateEnvironment(ctx, want)
	case fault.KindOf(err) != fault.NotFound:
		return Environment{}, err
	}
	want.ID, want.CreatedAt = NewID("env"), now()
	if err := s.Store.CreateEnvironment(ctx, want); err != nil && fault.KindOf(err) != fault.Conflict {
		return Environment{}, err
	}
	return s.Store.Environment(ctx, id, DefaultName)
}

// devKeyName begins the names of development keys.
const devKeyName = "dev-key-"

// devKeys makes the configured key the one living key of its kind. A former one
// expires, which can be taken back when it is configured again; one that was
// revoked by hand stays so.
func (s Setup) devKeys(ctx context.Context, id ID, environment string) error {
	keys, err := s.Store.Keys(ctx, id)
	if err != nil {
		return err
	}
	hash, there := HashKey(s.DevKey), s.DevKey == ""
	for _, k := range keys {
		current := s.DevKey != "" && k.Hash == hash
		there = there || current
		switch {
		case k.RevokedAt != nil, !strings.HasPrefix(k.Name, devKeyName):
			continue
		case current && (k.ExpiresAt != nil || slices.Equal(k.Scopes, formerScopes)):
			if k.ExpiresAt = nil; slices.Equal(k.Scopes, formerScopes) {
				k.Scopes = DefaultScopes
			}
		case !current && k.ExpiresAt == nil:
			at := now().Add(-time.Second)
			k.ExpiresAt = &at
		default:
			continue
		}
		if err := s.Store.UpdateKey(ctx, k); err != nil {
			return err
		}
	}
	if there {
		return nil
	}
	err = s.Store.CreateKey(ctx, Key{
		ID: NewID("key"), Tenant: id, Environment: environment, Name: fmt.Sprintf("%s%x", devKeyName, hash[:4]),
		Hash: hash, Hint: hint(s.DevKey), Scopes: DefaultScopes, CreatedAt: now(),
	})
	if fault.KindOf(err) != fault.Conflict {
		return err
	}
	// Another process was first, unless the key is another tenant's.
	keys, again := s.Store.Keys(ctx, id)
	if again == nil && !slices.ContainsFunc(keys, func(k Key) bool { return k.Hash == hash }) {
		return err
	}
	return again
}

// formerScopes are the DefaultScopes of versions without named sandboxes.
var formerScopes = []Scope{ScopeExecute, ScopeRead, ScopeTools}

// hint is what tells a key from others without giving it away. One that was
// chosen by a person may be too short to have any.
func hint(key string) string {
	if len(key) < 16 {
		return ""
	}
	return key[len(key)-4:]
}
