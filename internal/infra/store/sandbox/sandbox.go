// Package sandbox stores named sandboxes, their snapshots, and the calls of tools in them.
package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// Store implements sandbox.Store.
type Store struct{ db *sqldb.DB }

var _ sandbox.Store = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// sandboxRow is a sandbox with its variables as they are stored, sealed.
type sandboxRow struct {
	*sandbox.Sandbox
	env []byte
}

// sandboxTable is the table of named sandboxes. metered_at, endings and bereft
// also change by themselves.
var sandboxTable = sqldb.NewTable("sandboxes",
	sqldb.Col("id", sqldb.Fixed, func(r *sandboxRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *sandboxRow) any { return &r.Tenant }),
	sqldb.Col("environment", sqldb.Fixed, func(r *sandboxRow) any { return &r.Environment }),
	sqldb.Col("session", sqldb.Fixed, func(r *sandboxRow) any { return &r.Session }),
	sqldb.Col("name", sqldb.Fixed, func(r *sandboxRow) any { return &r.Name }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *sandboxRow) any { return &r.Key }),
	sqldb.Col("executor", sqldb.Fixed, func(r *sandboxRow) any { return &r.Executor }),
	sqldb.Col("image", sqldb.All, func(r *sandboxRow) any { return &r.Image }),
	sqldb.Col("asked", sqldb.Fixed, func(r *sandboxRow) any { return &r.ImageAlias }),
	sqldb.Col("image_warning", sqldb.All, func(r *sandboxRow) any { return &r.ImageWarning }),
	sqldb.Col("limits", sqldb.All, func(r *sandboxRow) any { return sqldb.LimitsAt(&r.Limits) }),
	sqldb.Col("memory", sqldb.Insert|sqldb.Update, func(r *sandboxRow) any { return &r.Limits.Memory }),
	sqldb.Col("own_cpu", sqldb.Fixed, func(r *sandboxRow) any { return &r.Own.CPU }),
	sqldb.Col("own_memory", sqldb.Fixed, func(r *sandboxRow) any { return &r.Own.Memory }),
	sqldb.Col("own_disk", sqldb.Fixed, func(r *sandboxRow) any { return &r.Own.Disk }),
	sqldb.Col("disk", sqldb.All, func(r *sandboxRow) any { return &r.Disk }),
	sqldb.Col("connected", sqldb.All, func(r *sandboxRow) any { return &r.Connected }),
	sqldb.Col("env", sqldb.Fixed, func(r *sandboxRow) any { return &r.env }),
	sqldb.Col("permissions", sqldb.All, func(r *sandboxRow) any { return sqldb.PermissionsAt(&r.Permissions) }),
	sqldb.Col("mounts", sqldb.All, func(r *sandboxRow) any { return mountsAt(&r.Mounts) }),
	sqldb.Col("state", sqldb.All, func(r *sandboxRow) any { return &r.State }),
	sqldb.Col("sleep", sqldb.All, func(r *sandboxRow) any { return &r.Sleep }),
	sqldb.Col("kept", sqldb.All, func(r *sandboxRow) any { return maybeStoredCopyAt(&r.Stored) }),
	sqldb.Col("detail", sqldb.All, func(r *sandboxRow) any { return sqldb.StorableAt(&r.Detail) }),
	sqldb.Col("sleep_after", sqldb.All, func(r *sandboxRow) any { return sqldb.DurationAt(&r.SleepAfter) }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *sandboxRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("used_at", sqldb.All, func(r *sandboxRow) any { return sqldb.TimeAt(&r.UsedAt) }),
	sqldb.Col("expires_at", sqldb.All, func(r *sandboxRow) any { return sqldb.MaybeTimeAt(&r.ExpiresAt) }),
	sqldb.Col("metered_at", sqldb.Fixed, func(r *sandboxRow) any { return sqldb.TimeAt(&r.MeteredAt) }),
	sqldb.Col("endings", sqldb.Read, func(r *sandboxRow) any { return endingsAt(&r.Endings) }),
	sqldb.Col("revision", sqldb.All, func(r *sandboxRow) any { return countAt(&r.Revision) }),
	sqldb.Column[sandboxRow]{
		Name: "ended_at", In: sqldb.Update, Expr: "CASE WHEN ? = 'destroyed' THEN atoll_now() END",
		Args: func(r *sandboxRow) []any { return []any{string(r.State)} },
	},
)

// countAt stores a number that is never negative.
func countAt(n *uint64) sqldb.Codec {
	return sqldb.Coded(n, func(n int64) (uint64, error) { return uint64(n), nil }, func(n uint64) (any, error) { return int64(n), nil })
}

func (s *Store) scan(sc sqldb.Scanner) (*sandbox.Sandbox, error) {
	row := sandboxRow{Sandbox: &sandbox.Sandbox{}}
	if err := sandboxTable.Scan(sc, &row); err != nil {
		return nil, sqldb.About(err, "record", string(row.ID))
	}
	var err error
	row.Env, err = openEnv(s.db, sandboxPlace(row.ID), row.env)
	return row.Sandbox, sqldb.About(err, "variables", string(row.ID))
}

// openEnv is what sealEnv has sealed.
func openEnv(db *sqldb.DB, place string, sealed []byte) (env map[string]string, err error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	plain, err := db.Seal.Open(sealed, place)
	if err != nil {
		return nil, err
	}
	return env, json.Unmarshal(plain, &env)
}

// sealEnv encrypts variables for a place.
func sealEnv(db *sqldb.DB, place string, env map[string]string) ([]byte, error) {
	if len(env) == 0 {
		return nil, nil
	}
	if err := sqldb.CheckMap(env); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	return db.Seal.Seal(plain, place), nil
}

// mountRow is a mount of a sandbox, as it is stored.
type mountRow struct {
	Slug       string       `json:"slug"`
	Connection string       `json:"connection"`
	Kind       storage.Kind `json:"kind"`
	Path       storage.Path `json:"path,omitzero"`
	ReadOnly   bool         `json:"read_only,omitzero"`
}

// mountsAt is mounts without their credentials, as JSON; "" for none.
func mountsAt(m *[]storage.Mount) sqldb.Codec {
	return sqldb.Coded(m, mountsOf, mountsText)
}

func mountsOf(text string) ([]storage.Mount, error) {
	if text == "" {
		return nil, nil
	}
	var rows []mountRow
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, err
	}
	out := make([]storage.Mount, len(rows))
	for i, r := range rows {
		out[i] = storage.Mount{Slug: r.Slug, Connection: r.Connection, Kind: r.Kind, Path: r.Path, ReadOnly: r.ReadOnly}
	}
	return out, nil
}

func mountsText(mounts []storage.Mount) (any, error) {
	if len(mounts) == 0 {
		return "", nil
	}
	rows := make([]mountRow, len(mounts))
	for i, m := range mounts {
		rows[i] = mountRow{m.Slug, m.Connection, m.Kind, m.Path, m.ReadOnly}
	}
	return sqldb.JSONOf(rows, false)
}

// endingRow is an ending of a sandbox's programs, as it is stored.
type endingRow struct {
	From      int64  `json:"from"` // µs since 1970
	Until     int64  `json:"until"`
	Reason    string `json:"reason"`
	Dimension string `json:"dimension,omitzero"`
}

func endingsOf(text string) ([]sandbox.Ending, error) {
	if text == "" {
		return nil, nil
	}
	var rows []endingRow
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, err
	}
	out := make([]sandbox.Ending, len(rows))
	for i, r := range rows {
		out[i] = sandbox.Ending{From: sqldb.Instant(r.From), Until: sqldb.Instant(r.Until), Reason: r.Reason, Dimension: r.Dimension}
	}
	return out, nil
}

// endingsAt is endings, as JSON; "" for none.
func endingsAt(e *[]sandbox.Ending) sqldb.Codec {
	return sqldb.Coded(e, endingsOf, endingsText)
}

func endingsText(endings []sandbox.Ending) (any, error) {
	rows := make([]endingRow, len(endings))
	for i, e := range endings {
		rows[i] = endingRow{sqldb.Micros(e.From), sqldb.Micros(e.Until), e.Reason, e.Dimension}
	}
	return sqldb.JSONOf(rows, false)
}

func (s *Store) SaveEndings(ctx context.Context, id runtime.ID, endings []sandbox.Ending) error {
	const step = "record why programs were ended"
	text, err := endingsText(endings)
	if err != nil {
		return s.db.Write.Wrap(step, err)
	}
	n, err := s.db.Write.Exec(ctx, `UPDATE sandboxes SET endings = ? WHERE id = ? AND state <> 'destroyed'`, text, string(id))
	if err == nil && n == 0 {
		err = sandbox.ErrNotFound
	}
	return s.db.Write.Wrap(step, err)
}

func sandboxPlace(id runtime.ID) string { return "sandboxes/env/" + string(id) }

// transact runs do while no other sandbox of the tenant is made or woken.
func (s *Store) transact(ctx context.Context, step, tenantID string, do func(t *sqldb.Tx) error) error {
	err := s.db.Write.TransactLocked(ctx, "sandboxes", tenantID, do)
	return s.db.Write.Wrap(step, err)
}

func (s *Store) Create(ctx context.Context, sb *sandbox.Sandbox, room sandbox.Quota) (there *sandbox.Sandbox, err error) {
	const step = "record a sandbox"
	env, err := sealEnv(s.db, sandboxPlace(sb.ID), sb.Env)
	if err != nil {
		return nil, s.db.Write.Wrap(step, err)
	}
	err = s.transact(ctx, step, sb.Tenant, func(t *sqldb.Tx) error {
		there, err = s.scan(t.Row(ctx, `SELECT `+sandboxTable.Selected+` FROM sandboxes
			WHERE tenant = ? AND environment = ? AND session = ? AND name = ? AND state <> 'destroyed'`, sb.Tenant, sb.Environment, sb.Session, sb.Name))
		if err != sql.ErrNoRows {
			return err
		}
		there = nil
		if err := ownedRoom(ctx, t, sb); err != nil {
			return err
		}
		if err := roomFor(ctx, t, sb, room, true); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		made := *sb
		made.CreatedAt, made.UsedAt, made.MeteredAt, made.Stored = now, now, now, nil
		if err := sandboxTable.Add(ctx, t, &sandboxRow{&made, env}); err != nil {
			return err
		}
		sb.CreatedAt, sb.UsedAt, sb.MeteredAt = now, now, now
		return nil
	})
	return there, err
}

// roomFor rejects a sandbox that exceeds its tenant's quota. An existing sandbox needs only memory and
// credits.
func roomFor(ctx context.Context, t *sqldb.Tx, sb *sandbox.Sandbox, room sandbox.Quota, another bool) error {
	if another && room.Sandboxes > 0 {
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM sandboxes WHERE tenant = ? AND state <> 'destroyed'`, sb.Tenant).Scan(&n); err != nil {
			return err
		}
		if n >= room.Sandboxes {
			return sandbox.TooMany(n, room.Sandboxes)
		}
	}
	if room.Memory > 0 {
		var used int64
		if err := t.Row(ctx, `SELECT coalesce(sum(memory), 0) FROM sandboxes
			WHERE tenant = ? AND id <> ? AND (state IN ('creating', 'running') OR state = 'sleeping' AND sleep = 'frozen')`, sb.Tenant, string(sb.ID)).Scan(&used); err != nil {
			return err
		}
		if used+sb.Limits.Memory > room.Memory {
			return sandbox.TooMuchMemory(used, room.Memory, sb.Limits.Memory)
		}
	}
	if room.Credits <= 0 {
		return nil
	}
	used, now, err := usagedb.MonthCredits(ctx, t, sb.Tenant)
	if err != nil {
		return err
	}
	if used >= room.Credits {
		return usagedb.OverBudget(used, room.Credits, now)
	}
	return nil
}

func (s *Store) Save(ctx context.Context, sb *sandbox.Sandbox) error {
	return s.db.Write.Wrap("save a sandbox", save(ctx, s.db.Write, sb))
}

// save records sb unless the record is destroyed or has a newer revision.
func save(ctx context.Context, q sqldb.Querier, sb *sandbox.Sandbox) error {
	kept, err := maybeStoredCopyAt(&sb.Stored).Value()
	if err != nil {
		return err
	}
	revision := int64(sb.Revision)
	values, err := sandboxTable.Values(sqldb.Update, &sandboxRow{Sandbox: sb}, string(sb.ID), revision)
	if err != nil {
		return err
	}
	// Note the tenant before its copy in the blob store loses its record, so that a sweep finds the copy
	// after a kill.
	if _, err := q.Exec(ctx, `INSERT INTO snapshot_litter (tenant, last) SELECT tenant, atoll_now() FROM sandboxes WHERE id = ? AND kept <> '' AND (kept <> ? OR ? = 'destroyed') AND revision <= ?
		ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`, string(sb.ID), kept, string(sb.State), revision); err != nil {
		return err
	}
	n, err := q.Exec(ctx, `UPDATE sandboxes SET `+sandboxTable.Set+` WHERE id = ? AND state <> 'destroyed' AND revision <= ?`, values...)
	if err == nil && n == 0 {
		return sandbox.ErrNotFound
	}
	return err
}

func (s *Store) Wake(ctx context.Context, sb *sandbox.Sandbox, room sandbox.Quota) error {
	return s.transact(ctx, "wake a sandbox", sb.Tenant, func(t *sqldb.Tx) error {
		if err := roomFor(ctx, t, sb, room, false); err != nil {
			return err
		}
		if err := save(ctx, t, sb); err != nil {
			return err
		}
		// Its sleep cost nothing.
		_, err := t.Exec(ctx, `UPDATE sandboxes SET metered_at = ? WHERE id = ? AND metered_at < ?`, sqldb.Micros(sb.MeteredAt), string(sb.ID), sqldb.Micros(sb.MeteredAt))
		return err
	})
}

func (s *Store) CheckBudget(ctx context.Context, tenantID tenant.ID) error {
	const step = "look at a tenant's budget"
	var budget float64
	err := s.db.Read.Row(ctx, `SELECT monthly_credits FROM tenants WHERE id = ?`, tenantID).Scan(&budget)
	if err == sql.ErrNoRows || err == nil && budget <= 0 {
		return nil
	}
	if err != nil {
		return s.db.Read.Wrap(step, err)
	}
	used, now, err := usagedb.MonthCredits(ctx, s.db.Read, tenantID)
	if err == nil && used >= budget {
		err = usagedb.OverBudget(used, budget, now)
	}
	return s.db.Read.Wrap(step, err)
}

func (s *Store) Delete(ctx context.Context, id runtime.ID) error {
	return s.db.Exec(ctx, "forget a sandbox", `DELETE FROM sandboxes WHERE id = ? AND state = 'creating'`, string(id))
}

func (s *Store) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	sb, err := s.scan(s.db.Read.Row(ctx, `SELECT `+sandboxTable.Selected+` FROM sandboxes WHERE tenant = ? AND id = ?`, tenantID, string(id)))
	return sb, s.db.Read.Found("get a sandbox", err, sandbox.ErrNotFound)
}

func (s *Store) Find(ctx context.Context, tenantID tenant.ID, environment, session, name string) (*sandbox.Sandbox, error) {
	sb, err := s.scan(s.db.Read.Row(ctx, `SELECT `+sandboxTable.Selected+` FROM sandboxes
		WHERE tenant = ? AND environment = ? AND session = ? AND name = ? AND state <> 'destroyed'`, tenantID, environment, session, name))
	return sb, s.db.Read.Found("find a sandbox", err, sandbox.ErrNotFound)
}

func (s *Store) Locate(ctx context.Context, id runtime.ID) (executor string, err error) {
	err = s.db.Read.Row(ctx, `SELECT executor FROM sandboxes WHERE id = ? AND state <> 'destroyed'`, string(id)).Scan(&executor)
	return executor, s.db.Read.Found("locate a sandbox", err, sandbox.ErrNotFound)
}

func (s *Store) Holders(ctx context.Context, id runtime.ID) (owner tenant.ID, keys []string, err error) {
	rows, err := s.db.Read.Rows(ctx, `SELECT s.tenant, k.id FROM sandboxes s JOIN keys k ON k.tenant = s.tenant AND k.environment = s.environment
		WHERE s.id = ? AND s.state <> 'destroyed' AND k.revoked_at IS NULL ORDER BY CASE WHEN k.id = s.key_id THEN 0 ELSE 1 END, k.seq DESC LIMIT ?`, string(id), sandbox.MaxHolders)
	keys, err = sqldb.Collect(rows, err, func(sc sqldb.Scanner) (key string, err error) { return key, sc.Scan(&owner, &key) })
	return owner, keys, s.db.Read.Wrap("list the keys of a sandbox", err)
}

func (s *Store) Holds(ctx context.Context, executor string, tenantID tenant.ID, environment, key string) (holds bool, err error) {
	err = s.db.Read.Row(ctx, `SELECT EXISTS (SELECT 1 FROM sandboxes
		WHERE executor = ? AND tenant = ? AND state <> 'destroyed' AND (environment = ? OR ? = '') AND (key_id = ? OR ? = ''))`,
		executor, tenantID, environment, environment, key, key).Scan(&holds)
	return holds, s.db.Read.Wrap("look for a sandbox of an executor", err)
}

func (s *Store) ListElsewhere(ctx context.Context, tenantID tenant.ID, environment, session, executor string) ([]*sandbox.Sandbox, error) {
	query := `SELECT ` + sandboxTable.Selected + ` FROM sandboxes
		WHERE tenant = ? AND environment = ? AND (session = ? OR ? = '') AND executor <> ? AND state <> 'destroyed' ORDER BY session, name`
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, query, tenantID, environment, session, session, executor)
	return all, s.db.Read.Wrap("list sandboxes of other machines", err)
}

func (s *Store) ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+sandboxTable.Selected+` FROM sandboxes WHERE executor = ? AND state <> 'destroyed' ORDER BY seq`, executor)
	return all, s.db.Read.Wrap("list sandboxes", err)
}

func (s *Store) ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error) {
	all, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[runtime.ID], `SELECT id FROM sandboxes WHERE executor = ? AND state <> 'destroyed' AND bereft`, executor)
	return all, s.db.Read.Wrap("list sandboxes without an environment", err)
}

func (s *Store) Purge(ctx context.Context, keep time.Duration, most int) (int, error) {
	n, err := s.db.Write.Exec(ctx, `DELETE FROM sandboxes WHERE seq IN (SELECT seq FROM sandboxes WHERE ended_at < atoll_now() - ? ORDER BY ended_at LIMIT ?)`,
		keep.Microseconds(), most)
	return int(n), s.db.Write.Wrap("purge sandboxes", err)
}

// meter is the task that charges for the time of a sandbox.
type meter struct {
	id    runtime.ID
	until time.Time
	entry usage.Entry
}

func (t *meter) Locks() []int64 { return nil }
func (t *meter) Order() string  { return "d" + string(t.id) }
func (t *meter) Owner() string  { return t.entry.Tenant }

func (t *meter) Do(ctx context.Context, b *sqldb.Batch) error {
	n, err := b.Exec(ctx, `UPDATE sandboxes SET metered_at = ? WHERE id = ? AND metered_at < ?`, sqldb.Micros(t.until), string(t.id), sqldb.Micros(t.until))
	if err != nil || n == 0 {
		return err
	}
	return usagedb.Add(ctx, b, t.entry)
}

func (s *Store) Meter(ctx context.Context, id runtime.ID, until time.Time, e usage.Entry) error {
	return s.db.Write.Wrap("charge for a sandbox", s.db.Submit(ctx, &meter{id, until, e}))
}
