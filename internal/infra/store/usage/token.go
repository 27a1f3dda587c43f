package usage

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// CountExecution counts an execution that a token starts, or refuses it if the token has started
// its most. Other keys have no such bound.
func CountExecution(ctx context.Context, b *sqldb.Batch, key string) (refusal, err error) {
	if !tenant.IsToken(key) {
		return nil, nil
	}
	err = b.Row(ctx, `UPDATE tokens SET executions = executions + 1 WHERE id = ? AND (max_executions = 0 OR executions < max_executions) RETURNING executions`, key).Scan(new(int64))
	if err != sql.ErrNoRows {
		return nil, err
	}
	var most int64
	if err := b.Row(ctx, `SELECT max_executions FROM tokens WHERE id = ?`, key).Scan(&most); err == sql.ErrNoRows {
		return tenant.ErrKeyInvalid, nil // it was removed meanwhile
	} else if err != nil {
		return nil, err
	}
	return tenant.Executed(most), nil
}

// spend adds a charge to what a token has spent, at the end of the batch.
func (s *sums) spend(c *usage.Charge) {
	if c.Cost <= 0 || !tenant.IsToken(c.Key) {
		return
	}
	if s.spent == nil {
		s.spent = map[string]usage.Money{}
	}
	s.spent[c.Key] = s.spent[c.Key].Plus(c.Cost)
}

// addSpent adds what a batch was charged to what tokens have spent.
func (s *sums) addSpent(ctx context.Context, b *sqldb.Batch) error {
	for _, id := range slices.Sorted(maps.Keys(s.spent)) {
		m := int64(s.spent[id])
		if err := b.Later(ctx, `UPDATE tokens SET cost = CASE WHEN cost > 9223372036854775807 - ? THEN 9223372036854775807 ELSE cost + ? END WHERE id = ?`, m, m, id); err != nil {
			return err
		}
	}
	return nil
}
