package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/usage"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// call is a call's audit row and what it used, and the task to write them.
type call struct {
	Row   audit.Row
	Entry usage.Entry // without a TraceID: none
	At    time.Time   // of the row; zero for the database's clock
	text  []byte      // of Row, sealed
}

func (t *call) Locks() []int64 { return nil }
func (t *call) Order() string  { return "c" }
func (t *call) Owner() string  { return t.Row.Tenant }

func (t *call) Do(ctx context.Context, b *sqldb.Batch) error {
	if err := auditdb.Insert(ctx, b, t.Row, t.At); err != nil {
		return err
	}
	if err := auditdb.KeepText(ctx, b, t.Row.Tenant, t.Row.TraceID, t.text); err != nil {
		return err
	}
	if t.Entry.TraceID == "" {
		return nil
	}
	return usagedb.Add(ctx, b, t.Entry)
}

// check refuses what the database would.
func (t *call) check() error {
	r, e := &t.Row, &t.Entry
	if !r.ExitStatus.Valid() {
		return audit.UnknownExitStatus(r.ExitStatus)
	}
	if err := auditdb.Check(*r); err != nil {
		return err
	}
	return sqldb.CheckText([]any{
		r.TraceID, r.Tenant, r.Key, r.Environment, r.Source, r.Agent, r.SessionID, r.Turn, r.Sandbox, r.Thread, r.Language, r.FailureReason,
		e.TraceID, e.Tenant, e.Key, e.Source,
	})
}

func (s *Store) Record(ctx context.Context, row audit.Row, e usage.Entry) error {
	const step = "record a call"
	c := &call{Row: auditdb.StorableRow(row), Entry: e, text: auditdb.SealText(s.db, row.Tenant, row.TraceID, sqldb.Storable(row.Text))}
	if err := c.check(); err != nil {
		return err
	}
	return s.db.Write.Wrap(step, s.db.Submit(ctx, c))
}
