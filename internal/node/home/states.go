package home

import (
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/core/thread"
)

// States are the saved states of a Store, as threads are edited from outside a sandbox.
type States struct{ *Store }

var _ thread.Homes = States{}

// Load implements thread.Homes.
func (s States) Load(ctx context.Context, tenant, state string) (thread.Home, error) {
	return s.home(tenant)(s.Store.Load(ctx, tenant, State(state)))
}

// Import implements thread.Homes.
func (s States) Import(ctx context.Context, tenant string, r io.Reader, limit thread.Quota) (thread.Home, error) {
	return s.home(tenant)(s.Store.Import(ctx, tenant, r, limit))
}

// home makes a thread.Home of a tree.
func (s States) home(tenant string) func(*Tree, error) (thread.Home, error) {
	return func(t *Tree, err error) (thread.Home, error) {
		if err != nil {
			return nil, err
		}
		return saved{t, s, tenant}, nil
	}
}

// saved is a tree with where its content is.
type saved struct {
	*Tree
	store  States
	tenant string
}

// Open implements thread.Home.
func (s saved) Open(ctx context.Context, path string, offset, limit int64) (io.ReadCloser, error) {
	return s.store.ReadFile(ctx, s.tenant, s.Tree, path, offset, limit)
}

// WriteFile implements thread.Home.
func (s saved) WriteFile(ctx context.Context, path string, r io.Reader, limit thread.Quota) (thread.Home, error) {
	return s.store.home(s.tenant)(s.store.WriteFile(ctx, s.tenant, s.Tree, path, r, limit))
}

// Remove implements thread.Home.
func (s saved) Remove(ctx context.Context, path string) (thread.Home, error) {
	return s.store.home(s.tenant)(s.store.Remove(ctx, s.tenant, s.Tree, path))
}

// Export implements thread.Home.
func (s saved) Export(ctx context.Context, w io.Writer) error {
	return s.store.Export(ctx, s.tenant, s.Tree, w)
}
