package engine

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/home"
)

// Threads are the homes of threads as an executor takes them.
type Threads struct{ Cache *home.Cache }

var _ executor.Homes = Threads{}

// Take implements executor.Homes.
func (t Threads) Take(ctx context.Context, tenant string, of execution.Thread) (executor.Home, error) {
	h, err := t.Cache.Take(ctx, tenant, of)
	if err != nil {
		return nil, err // not (*thread.Home)(nil)
	}
	return h, nil
}

// Adopt implements executor.Homes.
func (t Threads) Adopt(ctx context.Context, tenant string, of execution.Thread) (executor.Home, error) {
	h, err := t.Cache.Adopt(ctx, tenant, of)
	if err != nil {
		return nil, err
	}
	return h, nil
}
