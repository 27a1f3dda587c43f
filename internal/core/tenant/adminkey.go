package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// KeepKey stores a new key where its owner finds it. discard undoes that.
type KeepKey func(key string) (discard func() error, err error)

// AdminKey creates an admin key and returns it, or returns "" if a valid one exists. keep, which
// may be nil, stores the key before the database does. A process that dies in between leaves an
// invalid key, never a valid key that the operator cannot know. If several processes call AdminKey
// at once, only one of them creates the key.
func (s Setup) AdminKey(ctx context.Context, keep KeepKey) (string, error) {
	t, err := s.Store.Tenant(ctx, Operator)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		keys, err := s.Store.Keys(ctx, t.ID)
		if err != nil || slices.ContainsFunc(keys, administers) {
			return "", err
		}
		// Two processes choose the same name: the second one gets a conflict, looks again and
		// finds the key of the first.
		_, key, err := createAdminKey(ctx, s.Store, t.ID, fmt.Sprintf("admin-%d", len(keys)+n), setupActor, keep)
		if fault.KindOf(err) != fault.Conflict || err == nil {
			return key, err
		}
	}
}

// RecoverAdminKey creates another admin key for an operator who has lost the others. revokeOthers
// revokes those. actor is recorded with the change.
func RecoverAdminKey(ctx context.Context, store Store, actor string, revokeOthers bool, keep KeepKey) (k Key, key string, err error) {
	t, err := store.Tenant(ctx, Operator)
	if err != nil {
		return Key{}, "", err
	}
	for n := 1; ; n++ {
		keys, err := store.Keys(ctx, t.ID)
		if err != nil {
			return Key{}, "", err
		}
		k, key, err = createAdminKey(ctx, store, t.ID, fmt.Sprintf("recovered-%d", len(keys)+n), actor, keep)
		if err != nil && fault.KindOf(err) == fault.Conflict {
			continue
		}
		if err != nil || !revokeOthers {
			return k, key, err
		}
		for _, old := range keys {
			if !administers(old) {
				continue
			}
			revoked := PolicyEvent{Tenant: t.ID, Actor: actor, Field: "key/" + old.Name, Old: "active", New: "revoked", CreatedAt: now()}
			if err := store.RevokeKey(ctx, t.ID, old.ID, revoked); err != nil {
				return k, key, fmt.Errorf("revoke the key %s: %w", old.Name, err)
			}
		}
		return k, key, nil
	}
}

// createAdminKey passes a new key to keep, and then stores its record.
func createAdminKey(ctx context.Context, store Store, operator ID, name, actor string, keep KeepKey) (Key, string, error) {
	k, key := newKey(operator, name)
	k.Scopes = []Scope{ScopeAdmin}
	discard := func() error { return nil }
	if keep != nil {
		var err error
		if discard, err = keep(key); err != nil {
			return Key{}, "", fmt.Errorf("store the new admin key: %w", err)
		}
	}
	made := PolicyEvent{Tenant: operator, Actor: actor, Field: "key/" + name, New: string(ScopeAdmin), CreatedAt: k.CreatedAt}
	if err := store.CreateKey(ctx, k, made); err != nil {
		return Key{}, "", errors.Join(err, discard())
	}
	return k, key, nil
}
