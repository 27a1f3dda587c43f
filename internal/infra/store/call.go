package store

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// call is a call's audit row and what it used, and the task to write them.
type call struct {
	Row   audit.Row
	Entry usage.Entry // without a TraceID: none
	At    time.Time   // of the row; zero for the database's clock
	text  []byte      // of Row, sealed
}

func (t *call) locks() []int64 { return nil }
func (t *call) order() string  { return "c" }
func (t *call) owner() string  { return t.Row.Tenant }

func (t *call) do(ctx context.Context, b *batch) error {
	if err := insertAudit(ctx, b, t.Row, t.At); err != nil {
		return err
	}
	if err := keepText(ctx, b, t.Row.Tenant, t.Row.TraceID, t.text); err != nil {
		return err
	}
	if t.Entry.TraceID == "" {
		return nil
	}
	return addUsage(ctx, b, t.Entry)
}

// check refuses what the database would.
func (t *call) check() error {
	r, e := &t.Row, &t.Entry
	if !r.ExitStatus.Valid() {
		return audit.UnknownExitStatus(r.ExitStatus)
	}
	if err := checkAudit(*r); err != nil {
		return err
	}
	return checkText([]any{
		r.TraceID, r.Tenant, r.Key, r.Environment, r.Source, r.Agent, r.SessionID, r.Turn, r.Sandbox, r.Thread, r.Language, r.FailureReason,
		e.TraceID, e.Tenant, e.Key, e.Source,
	})
}

func (s *sandboxStore) Record(ctx context.Context, row audit.Row, e usage.Entry) error {
	const step = "record a call"
	c := &call{Row: storableRow(row), Entry: e, text: s.db.sealActivity(row.Tenant, row.TraceID, storable(row.Text))}
	if err := c.check(); err != nil {
		return err
	}
	return s.db.write.wrap(step, s.db.writer.write(ctx, c))
}

// storableRow is storable for all that a row of a call says: what was done is on
// record whatever its names are.
func storableRow(r audit.Row) audit.Row {
	for _, text := range []*string{&r.TraceID, &r.Source, &r.Agent, &r.SessionID, &r.Turn, &r.Sandbox, &r.Thread, &r.Language, &r.FailureReason} {
		*text = storable(*text)
	}
	r.OutboundHosts, r.Mounts = slices.Clone(r.OutboundHosts), slices.Clone(r.Mounts)
	for _, list := range [][]string{r.OutboundHosts, r.Mounts} {
		for i := range list {
			list[i] = storable(list[i])
		}
	}
	if len(r.Metadata) > 0 {
		told := make(map[string]string, len(r.Metadata))
		for name, value := range r.Metadata {
			told[storable(name)] = storable(value)
		}
		r.Metadata = told
	}
	return r
}
