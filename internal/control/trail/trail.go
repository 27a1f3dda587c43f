// Package trail reads filters of audit rows and of activity, and finds the trails of tenants.
package trail

import (
	"context"
	"encoding/hex"
	"regexp"
	"slices"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Names finds keys and environments of tenants; a *tenant.Admin implements it.
type Names interface {
	Key(ctx context.Context, tenantID tenant.ID, idOrName string) (tenant.Key, error)
	Environment(ctx context.Context, tenantID tenant.ID, idOrName string) (tenant.Environment, error)
}

// sourceName matches the names of sources: interfaces, tools, and operations on named sandboxes.
var sourceName = regexp.MustCompile(`^[a-z][a-z_]{0,63}$`)

// Query is the part of a filter that callers give as text; omitted fields are "".
type Query struct {
	HasSource        bool
	CodeSHA256       string
	Key, Environment string // ids or names
}

func (q *Query) hash() ([]byte, error) {
	if q.CodeSHA256 == "" {
		return nil, nil
	}
	sum, err := hex.DecodeString(q.CodeSHA256)
	if err != nil || len(sum) != 32 {
		return nil, invalid("executed_code_hash must be 64 hexadecimal digits")
	}
	return sum, nil
}

// find finds a key or environment of a tenant.
func find[T any](ctx context.Context, of tenant.ID, name string, unknown error, get func(context.Context, tenant.ID, string) (T, error)) (v T, err error) {
	if !tenant.Name.MatchString(name) {
		return v, unknown
	}
	v, err = get(ctx, of, name)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return v, unknown
	}
	return v, err
}

// Rows completes a filter of audit rows.
func (q *Query) Rows(ctx context.Context, names Names, f *audit.Filter) (err error) {
	if q.HasSource && !sourceName.MatchString(f.Source) {
		return invalid("source must be one that rows have, such as execute, execute_code, shell or sandbox_create")
	}
	if f.CodeSHA256, err = q.hash(); err != nil || q.Key == "" {
		return err
	}
	k, err := find(ctx, f.Tenant, q.Key, invalid("key: not found in this tenant"), names.Key)
	f.Key = k.ID
	return err
}

// Activity completes a filter of activity.
func (q *Query) Activity(ctx context.Context, names Names, f *activity.Filter) (err error) {
	if q.HasSource && !sourceName.MatchString(f.Source) {
		return invalid("source must be the source of an entry, such as execute, shell or process")
	}
	if f.CodeSHA256, err = q.hash(); err != nil {
		return err
	}
	const unknown = "%s not found: give the id or name of one that the tenant has, or omit it"
	if q.Key != "" {
		k, err := find(ctx, f.Tenant, q.Key, invalid(unknown, "key"), names.Key)
		if err != nil {
			return err
		}
		f.Key = k.ID
	}
	if q.Environment != "" {
		e, err := find(ctx, f.Tenant, q.Environment, invalid(unknown, "environment"), names.Environment)
		if err != nil {
			return err
		}
		f.Environment = e.ID
	}
	return nil
}

// Verifier checks trails.
type Verifier interface {
	Verify(ctx context.Context, tenant tenant.ID, known audit.Mark) (audit.Report, error)
	Trails(ctx context.Context) ([]tenant.ID, error)
}

// Mark reads the head of an earlier report.
func Mark(number int64, hash string) (m audit.Mark, err error) {
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != len(m.Hash) || number < 1 {
		return m, invalid("known must be the head of an earlier report: a number from 1 and a hash of 64 hexadecimal digits")
	}
	return audit.Mark{Number: number, Hash: [32]byte(sum)}, nil
}

// Trail is the trail of a tenant.
type Trail struct {
	verifier Verifier
	id       tenant.ID
	recorded bool // the tenant
}

// Find finds the trail of a tenant, or by name the trail of a tenant without a record, whose name is its id. t
// and failed are what the search for the tenant returned.
func Find(ctx context.Context, v Verifier, t tenant.Tenant, failed error, name string) (*Trail, error) {
	if failed == nil {
		return &Trail{v, t.ID, true}, nil
	}
	if fault.KindOf(failed) != fault.NotFound {
		return nil, failed
	}
	trails, err := v.Trails(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(trails, name) {
		return nil, failed
	}
	return &Trail{v, name, false}, nil
}

// Verify checks the trail.
func (t *Trail) Verify(ctx context.Context, known audit.Mark) (audit.Report, error) {
	r, err := t.verifier.Verify(ctx, t.id, known)
	if err == nil && !t.recorded {
		r.Problems = append(r.Problems, audit.Problem{Kind: audit.Tenant, Detail: "the audit trail of tenant " + t.id + " has no record of the tenant: a server that deletes a tenant keeps a record of it"})
	}
	return r, err
}
