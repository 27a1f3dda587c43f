package tenant

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// Limits of a key's webhook.
const (
	MaxWebhookURL    = 2048 // bytes
	MinWebhookSecret = 16   // characters
	MaxWebhookSecret = 256
)

// KeyChange changes a key; nil keeps a field.
type KeyChange struct {
	Name          *string
	Scopes        *[]Scope
	ExpiresAt     *time.Time // the zero time for no expiry
	WebhookURL    *string    // "" for none
	WebhookSecret *string    // "" for unsigned webhooks
	Variables     VariablesChange
}

// CreateKey creates a key for an environment of a tenant; "" for an admin-only key. The second
// result is the key's secret, which Atoll never shows again. CreateKey appends a PolicyEvent by
// actor.
func (a *Admin) CreateKey(ctx context.Context, actor, tenant, environment, name string, c KeyChange) (Key, string, error) {
	defer a.changing()()
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return Key{}, "", err
	}
	k, key := newKey(t.ID, name)
	if environment != "" {
		e, err := a.store.Environment(ctx, t.ID, environment)
		if err != nil && fault.KindOf(err) == fault.NotFound {
			return Key{}, "", invalid("environment: not found in this tenant")
		} else if err != nil {
			return Key{}, "", err
		}
		k.Environment = e.ID
	}
	c.Name = &name
	if c.Scopes == nil {
		c.Scopes = &DefaultScopes
	}
	if c.ExpiresAt != nil && !c.ExpiresAt.IsZero() && !c.ExpiresAt.After(time.Now()) {
		return Key{}, "", invalid("expires_at must be in the future")
	}
	if err := a.changeKey(ctx, t, &k, c); err != nil {
		return Key{}, "", err
	}
	made := PolicyEvent{Tenant: t.ID, Actor: actor, Field: "key/" + k.Name, New: scopesText(k.Scopes), CreatedAt: k.CreatedAt}
	if err := a.store.CreateKey(ctx, k, made); err != nil {
		return Key{}, "", err
	}
	kept, err := a.store.Key(ctx, t.ID, k.ID)
	return kept, key, err
}

// newKey returns a new key and its record.
func newKey(id ID, name string) (Key, string) {
	key := NewKey()
	return Key{ID: NewID("key"), Tenant: id, Name: name, Hash: HashKey(key), Hint: key[len(key)-4:], CreatedAt: now()}, key
}

// ChangeKey changes a key. The key's environment cannot change. It returns a Conflict fault for a
// revoked key.
func (a *Admin) ChangeKey(ctx context.Context, tenant, idOrName string, c KeyChange) (Key, error) {
	defer a.changing()()
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return Key{}, err
	}
	k, err := a.store.Key(ctx, t.ID, idOrName)
	if err != nil {
		return Key{}, err
	}
	if k.RevokedAt != nil {
		return Key{}, fault.New(fault.Conflict, "the key %s was revoked", k.Name)
	}
	if err := a.changeKey(ctx, t, &k, c); err != nil {
		return Key{}, err
	}
	if err := a.store.UpdateKey(ctx, k); err != nil {
		return Key{}, err
	}
	return a.store.Key(ctx, t.ID, k.ID)
}

// Key returns a key's record by its id or name.
func (a *Admin) Key(ctx context.Context, tenant, idOrName string) (Key, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return Key{}, err
	}
	return a.store.Key(ctx, t.ID, idOrName)
}

// Keys returns the records of a tenant's keys, including revoked ones.
func (a *Admin) Keys(ctx context.Context, tenant string) ([]Key, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return a.store.Keys(ctx, t.ID)
}

// RevokeKey revokes a key: in this process immediately, in others within 10 seconds. Work that the
// key started continues. RevokeKey appends a PolicyEvent by actor unless the key was already
// revoked.
func (a *Admin) RevokeKey(ctx context.Context, actor, tenant, idOrName string) (Key, error) {
	defer a.changing()()
	k, err := a.Key(ctx, tenant, idOrName)
	if err != nil {
		return Key{}, err
	}
	if k.RevokedAt != nil {
		return k, nil
	}
	revoked := PolicyEvent{Tenant: k.Tenant, Actor: actor, Field: "key/" + k.Name, Old: scopesText(k.Scopes), New: "revoked", CreatedAt: now()}
	if err := a.store.RevokeKey(ctx, k.Tenant, k.ID, revoked); err != nil {
		return Key{}, err
	}
	return a.store.Key(ctx, k.Tenant, k.ID)
}

// scopesText renders a key's scopes for events.
func scopesText(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

func (a *Admin) changeKey(ctx context.Context, t Tenant, k *Key, c KeyChange) error {
	if c.Name != nil {
		if err := checkName("key", *c.Name); err != nil {
			return err
		}
		k.Name = *c.Name
	}
	if c.Scopes != nil {
		if err := checkScopes(t, k, *c.Scopes); err != nil {
			return err
		}
		k.Scopes = slices.Compact(slices.Sorted(slices.Values(*c.Scopes)))
	}
	if c.ExpiresAt != nil {
		k.ExpiresAt = nil
		if at := c.ExpiresAt.UTC().Truncate(time.Microsecond); !at.IsZero() {
			if at.Year() < 2000 || at.Year() > 9999 {
				return invalid("expires_at must be between the years 2000 and 9999")
			}
			k.ExpiresAt = &at
		}
	}
	if c.WebhookURL != nil && *c.WebhookURL != "" {
		if err := checkText("webhook_url", *c.WebhookURL, 1, MaxWebhookURL); err != nil {
			return err
		}
		if err := a.cfg.CheckWebhook(outbound.For(ctx, t.ID), *c.WebhookURL); err != nil {
			return err
		}
	}
	if c.WebhookSecret != nil && *c.WebhookSecret != "" {
		if err := checkText("webhook_secret", *c.WebhookSecret, MinWebhookSecret, MaxWebhookSecret); err != nil {
			return err
		}
		if err := a.cfg.CheckSecret(*c.WebhookSecret); err != nil {
			return err
		}
	}
	set(&k.WebhookURL, c.WebhookURL)
	set(&k.WebhookSecret, c.WebhookSecret)
	return c.Variables.apply(&k.Env, &k.Secrets, &k.Bound)
}

func checkScopes(t Tenant, k *Key, scopes []Scope) error {
	if len(scopes) == 0 {
		return invalid("scopes must name at least one of execute, read, tools, admin")
	}
	for _, s := range scopes {
		if err := oneOf("scopes", s, Scopes); err != nil {
			return err
		}
		switch {
		case s == ScopeAdmin && t.Name != Operator:
			return invalid("scopes: only keys of the tenant %[2]s can have %[1]s, because it reaches every tenant", ScopeAdmin, Operator)
		case s != ScopeAdmin && k.Environment == "":
			return invalid("environment is required: a key without one can have only the scope %s", ScopeAdmin)
		}
	}
	return nil
}

// checkText validates printable ASCII of limited length.
func checkText(field, text string, least, most int) error {
	for _, r := range text {
		if r <= ' ' || r > '~' {
			return invalid("%s must be printable ASCII without spaces", field)
		}
	}
	if len(text) < least || len(text) > most {
		return invalid("%s must be %d to %d characters", field, least, most)
	}
	return nil
}
