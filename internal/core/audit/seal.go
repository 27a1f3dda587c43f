package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// batch limits the rows that a seal covers: enough to keep seals few, and not too many for a
// verification to hold in memory.
const batch = 1000

// Sealer seals appended rows in batches. Several Sealers may share a store.
type Sealer struct{ store Store }

func NewSealer(store Store) *Sealer { return &Sealer{store} }

// Seal seals every unsealed row of every tenant and returns the number of rows. If one tenant
// fails, Seal continues with the others and returns the joined errors.
func (s *Sealer) Seal(ctx context.Context) (int, error) {
	tenants, err := s.store.Unsealed(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the rows to seal: %w", err)
	}
	total := 0
	for _, tenant := range tenants {
		n, failed := s.SealTenant(ctx, tenant)
		total += n
		err = errors.Join(err, failed)
	}
	return total, err
}

// SealTenant seals the rows of one tenant.
func (s *Sealer) SealTenant(ctx context.Context, tenant string) (total int, err error) {
	for {
		n, err := s.store.Seal(ctx, tenant, batch, func(last Seal, rows []Row) Seal { return next(last, tenant, rows) })
		total += n
		if err != nil {
			return total, fmt.Errorf("seal the rows of %s: %w", tenant, err)
		}
		if n < batch {
			return total, nil
		}
	}
}

// Verify seals a tenant's remaining rows, then checks the whole trail and the database rules that
// protect it. known is the Head of an earlier Report, or zero.
func (s *Sealer) Verify(ctx context.Context, tenant string, known Mark) (Report, error) {
	// The rules come first: what is written after they were looked at is found next
	// time.
	missing, err := s.store.Rules(ctx)
	if err != nil {
		return Report{}, err
	}
	if _, err := s.SealTenant(ctx, tenant); err != nil {
		return Report{}, err
	}
	r, err := Verify(ctx, s.store, tenant, known, time.Now())
	if err != nil {
		return Report{}, err
	}
	for _, name := range missing {
		r.add(0, 0, Unprotected, "the database's rule %s is missing, switched off or changed: rows could be changed, added without a seal, or deleted since then", name)
	}
	loose, err := s.store.Uncovered(ctx, tenant, maxProblems)
	if err != nil {
		return Report{}, err
	}
	for _, id := range loose {
		r.add(0, id, Unsealed, "row %d is covered by no seal and waits for none: the rule that has rows sealed was missing when it came", id)
	}
	return r, nil
}

// Trails lists the tenants that have a trail, including deleted tenants.
func (s *Sealer) Trails(ctx context.Context) ([]string, error) { return s.store.Trails(ctx) }
