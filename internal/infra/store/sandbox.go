package store

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
)

// sandboxes is the sandbox.Store.
type sandboxStore struct{ db *DB }

var _ sandbox.Store = (*sandboxStore)(nil)

// Sandboxes is the store of named sandboxes.
func (db *DB) Sandboxes() sandbox.Store { return &sandboxStore{db} }

// sandboxRow is a sandbox with its variables as they are stored, sealed.
type sandboxRow struct {
	*sandbox.Sandbox
	env []byte
}

// sandboxTable is the table of named sandboxes. metered_at, endings and bereft
// also change by themselves.
var sandboxTable = newTable("sandboxes",
	col("id", fixed, func(r *sandboxRow) any { return &r.ID }),
	col("tenant", fixed, func(r *sandboxRow) any { return &r.Tenant }),
	col("environment", fixed, func(r *sandboxRow) any { return &r.Environment }),
	col("session", fixed, func(r *sandboxRow) any { return &r.Session }),
	col("name", fixed, func(r *sandboxRow) any { return &r.Name }),
	col("key_id", fixed, func(r *sandboxRow) any { return &r.Key }),
	col("executor", fixed, func(r *sandboxRow) any { return &r.Executor }),
	col("image", all, func(r *sandboxRow) any { return &r.Image }),
	col("asked", fixed, func(r *sandboxRow) any { return &r.ImageAlias }),
	col("image_warning", all, func(r *sandboxRow) any { return &r.ImageWarning }),
	col("limits", all, func(r *sandboxRow) any { return limitsAt(&r.Limits) }),
	col("memory", insert|update, func(r *sandboxRow) any { return &r.Limits.Memory }),
	col("own_cpu", fixed, func(r *sandboxRow) any { return &r.Own.CPU }),
	col("own_memory", fixed, func(r *sandboxRow) any { return &r.Own.Memory }),
	col("own_disk", fixed, func(r *sandboxRow) any { return &r.Own.Disk }),
	col("disk", all, func(r *sandboxRow) any { return &r.Disk }),
	col("connected", all, func(r *sandboxRow) any { return &r.Connected }),
	col("env", fixed, func(r *sandboxRow) any { return &r.env }),
	col("permissions", all, func(r *sandboxRow) any { return permissionsAt(&r.Permissions) }),
	col("mounts", all, func(r *sandboxRow) any { return mountsAt(&r.Mounts) }),
	col("state", all, func(r *sandboxRow) any { return &r.State }),
	col("sleep", all, func(r *sandboxRow) any { return &r.Sleep }),
	col("kept", all, func(r *sandboxRow) any { return maybeStoredCopyAt(&r.Stored) }),
	col("detail", all, func(r *sandboxRow) any { return storableAt(&r.Detail) }),
	col("sleep_after", all, func(r *sandboxRow) any { return durationAt(&r.SleepAfter) }),
	col("created_at", fixed, func(r *sandboxRow) any { return timeAt(&r.CreatedAt) }),
	col("used_at", all, func(r *sandboxRow) any { return timeAt(&r.UsedAt) }),
	col("expires_at", all, func(r *sandboxRow) any { return maybeTimeAt(&r.ExpiresAt) }),
	col("metered_at", fixed, func(r *sandboxRow) any { return timeAt(&r.MeteredAt) }),
	col("endings", read, func(r *sandboxRow) any { return endingsAt(&r.Endings) }),
	column[sandboxRow]{
		name: "ended_at", in: update, expr: "CASE WHEN ? = 'destroyed' THEN atoll_now() END",
		args: func(r *sandboxRow) []any { return []any{string(r.State)} },
	},
)

func (s *sandboxStore) scan(sc scanner) (*sandbox.Sandbox, error) {
	row := sandboxRow{Sandbox: &sandbox.Sandbox{}}
	if err := sandboxTable.scan(sc, &row); err != nil {
		return nil, about(err, "record", string(row.ID))
	}
	var err error
	row.Env, err = s.db.openEnv(sandboxPlace(row.ID), row.env)
	return row.Sandbox, about(err, "variables", string(row.ID))
}

// openEnv is what sealEnv has sealed.
func (db *DB) openEnv(place string, sealed []byte) (env map[string]string, err error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	plain, err := db.seal.Open(sealed, place)
	if err != nil {
		return nil, err
	}
	return env, json.Unmarshal(plain, &env)
}

// sealEnv encrypts variables for a place.
func (db *DB) sealEnv(place string, env map[string]string) ([]byte, error) {
	if len(env) == 0 {
		return nil, nil
	}
	if err := checkMap(env); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	return db.seal.Seal(plain, place), nil
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
func mountsAt(m *[]storage.Mount) codec {
	return coded[[]storage.Mount, string]{m, mountsOf, mountsText}
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
	return jsonOf(rows, false)
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
		out[i] = sandbox.Ending{From: instant(r.From), Until: instant(r.Until), Reason: r.Reason, Dimension: r.Dimension}
	}
	return out, nil
}

// endingsAt is endings, as JSON; "" for none.
func endingsAt(e *[]sandbox.Ending) codec {
	return coded[[]sandbox.Ending, string]{e, endingsOf, endingsText}
}

func endingsText(endings []sandbox.Ending) (any, error) {
	rows := make([]endingRow, len(endings))
	for i, e := range endings {
		rows[i] = endingRow{micros(e.From), micros(e.Until), e.Reason, e.Dimension}
	}
	return jsonOf(rows, false)
}

func (s *sandboxStore) SaveEndings(ctx context.Context, id runtime.ID, endings []sandbox.Ending) error {
	const step = "record why programs were ended"
	text, err := endingsText(endings)
	if err != nil {
		return s.db.write.wrap(step, err)
	}
	n, err := s.db.write.exec(ctx, `UPDATE sandboxes SET endings = ? WHERE id = ? AND state <> 'destroyed'`, text, string(id))
	if err == nil && n == 0 {
		err = sandbox.ErrNotFound
	}
	return s.db.write.wrap(step, err)
}

func sandboxPlace(id runtime.ID) string { return "sandboxes/env/" + string(id) }

// transact runs do while no other sandbox of the tenant is made or woken.
func (s *sandboxStore) transact(ctx context.Context, step, tenantID string, do func(t *tx) error) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("sandboxes", tenantID)); err != nil {
				return err
			}
		}
		return do(t)
	})
	return s.db.write.wrap(step, err)
}

func (s *sandboxStore) Create(ctx context.Context, sb *sandbox.Sandbox, room sandbox.Quota) (there *sandbox.Sandbox, err error) {
	const step = "record a sandbox"
	env, err := s.db.sealEnv(sandboxPlace(sb.ID), sb.Env)
	if err != nil {
		return nil, s.db.write.wrap(step, err)
	}
	err = s.transact(ctx, step, sb.Tenant, func(t *tx) error {
		there, err = s.scan(t.row(ctx, `SELECT `+sandboxTable.selected+` FROM sandboxes
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
		now, err := t.dialect().clock(ctx, t)
		if err != nil {
			return err
		}
		made := *sb
		made.CreatedAt, made.UsedAt, made.MeteredAt, made.Stored = now, now, now, nil
		values, err := sandboxTable.values(insert, &sandboxRow{&made, env})
		if err != nil {
			return err
		}
		if _, err = t.exec(ctx, sandboxTable.insert, values...); err != nil {
			return err
		}
		sb.CreatedAt, sb.UsedAt, sb.MeteredAt = now, now, now
		return nil
	})
	return there, err
}

// roomFor refuses a sandbox for which its tenant has no room. One that there is
// already only needs memory and credits.
func roomFor(ctx context.Context, t *tx, sb *sandbox.Sandbox, room sandbox.Quota, another bool) error {
	if another && room.Sandboxes > 0 {
		var n int
		if err := t.row(ctx, `SELECT count(*) FROM sandboxes WHERE tenant = ? AND state <> 'destroyed'`, sb.Tenant).Scan(&n); err != nil {
			return err
		}
		if n >= room.Sandboxes {
			return sandbox.TooMany(n, room.Sandboxes)
		}
	}
	if room.Memory > 0 {
		var used int64
		if err := t.row(ctx, `SELECT coalesce(sum(memory), 0) FROM sandboxes
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
	used, now, err := monthCredits(ctx, t, sb.Tenant)
	if err != nil {
		return err
	}
	if used >= room.Credits {
		return errBudget(used, room.Credits, now)
	}
	return nil
}

func (s *sandboxStore) Save(ctx context.Context, sb *sandbox.Sandbox) error {
	return s.db.write.wrap("save a sandbox", s.save(ctx, s.db.write, sb))
}

func (s *sandboxStore) save(ctx context.Context, q querier, sb *sandbox.Sandbox) error {
	kept, err := maybeStoredCopyAt(&sb.Stored).value()
	if err != nil {
		return err
	}
	values, err := sandboxTable.values(update, &sandboxRow{Sandbox: sb}, string(sb.ID))
	if err != nil {
		return err
	}
	// What the blob store has and no record refers to from now on is noted first, so
	// that a kill in between leaves the note.
	if _, err := q.exec(ctx, `INSERT INTO snapshot_litter (tenant, last) SELECT tenant, atoll_now() FROM sandboxes WHERE id = ? AND kept <> '' AND (kept <> ? OR ? = 'destroyed')
		ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`, string(sb.ID), kept, string(sb.State)); err != nil {
		return err
	}
	n, err := q.exec(ctx, `UPDATE sandboxes SET `+sandboxTable.set+` WHERE id = ? AND state <> 'destroyed'`, values...)
	if err == nil && n == 0 {
		return sandbox.ErrNotFound
	}
	return err
}

func (s *sandboxStore) Wake(ctx context.Context, sb *sandbox.Sandbox, room sandbox.Quota) error {
	return s.transact(ctx, "wake a sandbox", sb.Tenant, func(t *tx) error {
		if err := roomFor(ctx, t, sb, room, false); err != nil {
			return err
		}
		if err := s.save(ctx, t, sb); err != nil {
			return err
		}
		// Its sleep cost nothing.
		_, err := t.exec(ctx, `UPDATE sandboxes SET metered_at = ? WHERE id = ? AND metered_at < ?`, micros(sb.MeteredAt), string(sb.ID), micros(sb.MeteredAt))
		return err
	})
}

func (s *sandboxStore) CheckBudget(ctx context.Context, tenantID tenant.ID) error {
	const step = "look at a tenant's budget"
	var budget float64
	err := s.db.read.row(ctx, `SELECT monthly_credits FROM tenants WHERE id = ?`, tenantID).Scan(&budget)
	if err == sql.ErrNoRows || err == nil && budget <= 0 {
		return nil
	}
	if err != nil {
		return s.db.read.wrap(step, err)
	}
	used, now, err := monthCredits(ctx, s.db.read, tenantID)
	if err == nil && used >= budget {
		err = errBudget(used, budget, now)
	}
	return s.db.read.wrap(step, err)
}

func (s *sandboxStore) Delete(ctx context.Context, id runtime.ID) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM sandboxes WHERE id = ? AND state = 'creating'`, string(id))
	return s.db.write.wrap("forget a sandbox", err)
}

func (s *sandboxStore) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	sb, err := s.scan(s.db.read.row(ctx, `SELECT `+sandboxTable.selected+` FROM sandboxes WHERE tenant = ? AND id = ?`, tenantID, string(id)))
	return sb, s.db.read.found("get a sandbox", err, sandbox.ErrNotFound)
}

func (s *sandboxStore) Find(ctx context.Context, tenantID tenant.ID, environment, session, name string) (*sandbox.Sandbox, error) {
	sb, err := s.scan(s.db.read.row(ctx, `SELECT `+sandboxTable.selected+` FROM sandboxes
		WHERE tenant = ? AND environment = ? AND session = ? AND name = ? AND state <> 'destroyed'`, tenantID, environment, session, name))
	return sb, s.db.read.found("find a sandbox", err, sandbox.ErrNotFound)
}

func (s *sandboxStore) Locate(ctx context.Context, id runtime.ID) (executor string, err error) {
	err = s.db.read.row(ctx, `SELECT executor FROM sandboxes WHERE id = ? AND state <> 'destroyed'`, string(id)).Scan(&executor)
	return executor, s.db.read.found("locate a sandbox", err, sandbox.ErrNotFound)
}

func (s *sandboxStore) Holders(ctx context.Context, id runtime.ID) (owner tenant.ID, keys []string, err error) {
	rows, err := s.db.read.rows(ctx, `SELECT s.tenant, k.id FROM sandboxes s JOIN keys k ON k.tenant = s.tenant AND k.environment = s.environment
		WHERE s.id = ? AND s.state <> 'destroyed' AND k.revoked_at IS NULL ORDER BY CASE WHEN k.id = s.key_id THEN 0 ELSE 1 END, k.seq DESC LIMIT ?`, string(id), sandbox.MaxHolders)
	keys, err = collect(rows, err, func(sc scanner) (key string, err error) { return key, sc.Scan(&owner, &key) })
	return owner, keys, s.db.read.wrap("list the keys of a sandbox", err)
}

func (s *sandboxStore) ListElsewhere(ctx context.Context, tenantID tenant.ID, environment, session, executor string) ([]*sandbox.Sandbox, error) {
	query := `SELECT ` + sandboxTable.selected + ` FROM sandboxes
		WHERE tenant = ? AND environment = ? AND (session = ? OR ? = '') AND executor <> ? AND state <> 'destroyed' ORDER BY session, name`
	rows, err := s.db.read.rows(ctx, query, tenantID, environment, session, session, executor)
	all, err := collect(rows, err, s.scan)
	return all, s.db.read.wrap("list sandboxes of other machines", err)
}

func (s *sandboxStore) ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+sandboxTable.selected+` FROM sandboxes WHERE executor = ? AND state <> 'destroyed' ORDER BY seq`, executor)
	all, err := collect(rows, err, s.scan)
	return all, s.db.read.wrap("list sandboxes", err)
}

func (s *sandboxStore) ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error) {
	rows, err := s.db.read.rows(ctx, `SELECT id FROM sandboxes WHERE executor = ? AND state <> 'destroyed' AND bereft`, executor)
	all, err := collect(rows, err, func(sc scanner) (id runtime.ID, err error) { return id, sc.Scan(&id) })
	return all, s.db.read.wrap("list sandboxes without an environment", err)
}

func (s *sandboxStore) Purge(ctx context.Context, keep time.Duration, most int) (int, error) {
	n, err := s.db.write.exec(ctx, `DELETE FROM sandboxes WHERE seq IN (SELECT seq FROM sandboxes WHERE ended_at < atoll_now() - ? ORDER BY ended_at LIMIT ?)`,
		keep.Microseconds(), most)
	return int(n), s.db.write.wrap("purge sandboxes", err)
}

// meter is the task that charges for the time of a sandbox.
type meter struct {
	id    runtime.ID
	until time.Time
	entry usage.Entry
}

func (t *meter) locks() []int64 { return nil }
func (t *meter) order() string  { return "d" + string(t.id) }
func (t *meter) owner() string  { return t.entry.Tenant }

func (t *meter) do(ctx context.Context, b *batch) error {
	n, err := b.exec(ctx, `UPDATE sandboxes SET metered_at = ? WHERE id = ? AND metered_at < ?`, micros(t.until), string(t.id), micros(t.until))
	if err != nil || n == 0 {
		return err
	}
	return addUsage(ctx, b, t.entry)
}

func (s *sandboxStore) Meter(ctx context.Context, id runtime.ID, until time.Time, e usage.Entry) error {
	return s.db.write.wrap("charge for a sandbox", s.db.writer.write(ctx, &meter{id, until, e}))
}
