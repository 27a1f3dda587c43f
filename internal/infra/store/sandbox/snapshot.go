package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Snapshots implements sandbox.SnapshotStore.
type Snapshots struct{ db *sqldb.DB }

var _ sandbox.SnapshotStore = (*Snapshots)(nil)

// NewSnapshots returns the store in a database.
func NewSnapshots(db *sqldb.DB) *Snapshots { return &Snapshots{db} }

// snapshotRow is a snapshot with its variables as they are stored, sealed.
type snapshotRow struct {
	*sandbox.Snapshot
	env   []byte
	bytes int64 // that it has or is going to have, for sums
}

// snapshotTable is the table of snapshots. One whose kept is empty is being made.
var snapshotTable = sqldb.NewTable("snapshots",
	sqldb.Col("id", sqldb.Fixed, func(r *snapshotRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *snapshotRow) any { return &r.Tenant }),
	sqldb.Col("environment", sqldb.Fixed, func(r *snapshotRow) any { return &r.Environment }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *snapshotRow) any { return &r.Key }),
	sqldb.Col("executor", sqldb.Fixed, func(r *snapshotRow) any { return &r.Executor }),
	sqldb.Col("sandbox", sqldb.Fixed, func(r *snapshotRow) any { return &r.Sandbox }),
	sqldb.Col("session", sqldb.Fixed, func(r *snapshotRow) any { return &r.Session }),
	sqldb.Col("name", sqldb.Fixed, func(r *snapshotRow) any { return &r.Name }),
	sqldb.Col("image", sqldb.Fixed, func(r *snapshotRow) any { return &r.Image }),
	sqldb.Col("asked", sqldb.Fixed, func(r *snapshotRow) any { return &r.ImageAlias }),
	sqldb.Col("limits", sqldb.Fixed, func(r *snapshotRow) any { return sqldb.LimitsAt(&r.Limits) }),
	sqldb.Col("disk_limit", sqldb.Fixed, func(r *snapshotRow) any { return &r.DiskLimit }),
	sqldb.Col("own_cpu", sqldb.Fixed, func(r *snapshotRow) any { return &r.Own.CPU }),
	sqldb.Col("own_memory", sqldb.Fixed, func(r *snapshotRow) any { return &r.Own.Memory }),
	sqldb.Col("own_disk", sqldb.Fixed, func(r *snapshotRow) any { return &r.Own.Disk }),
	sqldb.Col("permissions", sqldb.Fixed, func(r *snapshotRow) any { return sqldb.PermissionsAt(&r.Permissions) }),
	sqldb.Col("connected", sqldb.Fixed, func(r *snapshotRow) any { return &r.Connected }),
	sqldb.Col("env", sqldb.Fixed, func(r *snapshotRow) any { return &r.env }),
	sqldb.Col("sleep_after", sqldb.Fixed, func(r *snapshotRow) any { return sqldb.DurationAt(&r.SleepAfter) }),
	sqldb.Col("mounts", sqldb.Fixed, func(r *snapshotRow) any { return mountsAt(&r.Mounts) }),
	sqldb.Col("kept", sqldb.All, func(r *snapshotRow) any { return storedCopyAt(&r.Stored) }),
	sqldb.Col("bytes", sqldb.Insert|sqldb.Update, func(r *snapshotRow) any { return &r.bytes }),
	sqldb.Col("detail", sqldb.All, func(r *snapshotRow) any { return sqldb.StorableAt(&r.Detail) }),
	sqldb.Col("created_at", sqldb.All, func(r *snapshotRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("expires_at", sqldb.All, func(r *snapshotRow) any { return sqldb.MaybeTimeAt(&r.ExpiresAt) }),
)

// keptRow is where the blob store has something, as it is stored.
type keptRow struct {
	State      string `json:"state"`
	Bytes      int64  `json:"bytes"`
	Disk       int64  `json:"disk"`
	Checkpoint bool   `json:"memory,omitzero"`
	Kernel     string `json:"kernel,omitzero"`
	Image      string `json:"image,omitzero"`
}

// keptOf decodes a keptRow; nil for "".
func keptOf(text string) (*sandbox.StoredCopy, error) {
	if text == "" {
		return nil, nil
	}
	var row keptRow
	err := json.Unmarshal([]byte(text), &row)
	k := sandbox.StoredCopy(row)
	return &k, err
}

// maybeStoredCopyAt is a keptRow; "" for nil.
func maybeStoredCopyAt(k **sandbox.StoredCopy) sqldb.Codec {
	write := func(k *sandbox.StoredCopy) (any, error) {
		if k == nil {
			return "", nil
		}
		return sqldb.JSONOf(keptRow(*k), false)
	}
	return sqldb.Coded(k, keptOf, write)
}

// storedCopyAt is a keptRow; "" for the zero value.
func storedCopyAt(k *sandbox.StoredCopy) sqldb.Codec {
	read := func(text string) (sandbox.StoredCopy, error) {
		k, err := keptOf(text)
		if k == nil {
			return sandbox.StoredCopy{}, err
		}
		return *k, err
	}
	write := func(k sandbox.StoredCopy) (any, error) { return sqldb.JSONOf(keptRow(k), k == sandbox.StoredCopy{}) }
	return sqldb.Coded(k, read, write)
}

func (s *Snapshots) scan(sc sqldb.Scanner) (*sandbox.Snapshot, error) {
	row := snapshotRow{Snapshot: &sandbox.Snapshot{}}
	if err := snapshotTable.Scan(sc, &row); err != nil {
		return nil, sqldb.About(err, "record", string(row.ID))
	}
	var err error
	row.Env, err = openEnv(s.db, snapshotPlace(row.ID), row.env)
	return row.Snapshot, sqldb.About(err, "variables", string(row.ID))
}

func snapshotPlace(id sandbox.SnapshotID) string { return "snapshots/env/" + string(id) }

// transact runs do while no other snapshot of the tenant is made.
func (s *Snapshots) transact(ctx context.Context, step, tenantID string, do func(t *sqldb.Tx) error) error {
	err := s.db.Write.TransactLocked(ctx, "snapshots", tenantID, do)
	return s.db.Write.Wrap(step, err)
}

func (s *Snapshots) Begin(ctx context.Context, sn *sandbox.Snapshot, room sandbox.SnapshotQuota) error {
	const step = "record a snapshot"
	env, err := sealEnv(s.db, snapshotPlace(sn.ID), sn.Env)
	if err != nil {
		return s.db.Write.Wrap(step, err)
	}
	return s.transact(ctx, step, sn.Tenant, func(t *sqldb.Tx) error {
		if err := snapshotRoom(ctx, t, sn, room); err != nil {
			return err
		}
		if err := snapshotLitter(ctx, t, sn.Tenant); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		begun := *sn
		begun.Stored, begun.Detail, begun.CreatedAt, begun.ExpiresAt = sandbox.StoredCopy{}, "", now, nil
		return snapshotTable.Add(ctx, t, &snapshotRow{&begun, env, sn.Stored.Bytes})
	})
}

// snapshotRoom refuses a snapshot for which its tenant has no room.
func snapshotRoom(ctx context.Context, t *sqldb.Tx, sn *sandbox.Snapshot, room sandbox.SnapshotQuota) error {
	var n int
	var used int64
	if err := t.Row(ctx, `SELECT count(*), coalesce(sum(bytes), 0) FROM snapshots WHERE tenant = ? AND id <> ?`, sn.Tenant, string(sn.ID)).Scan(&n, &used); err != nil {
		return err
	}
	if room.Snapshots > 0 && n >= room.Snapshots {
		return sandbox.TooManySnapshots(n, room.Snapshots)
	}
	if room.Bytes > 0 && used+sn.Stored.Bytes > room.Bytes {
		return sandbox.SnapshotsTooLarge(used, room.Bytes, sn.Stored.Bytes)
	}
	return nil
}

func (s *Snapshots) Finish(ctx context.Context, sn *sandbox.Snapshot, keep time.Duration, room sandbox.SnapshotQuota) error {
	const step = "finish a snapshot"
	return s.transact(ctx, step, sn.Tenant, func(t *sqldb.Tx) error {
		if err := snapshotRoom(ctx, t, sn, room); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		var expires *time.Time
		if keep > 0 {
			at := now.Add(keep)
			expires = &at
		}
		done := *sn
		done.CreatedAt, done.ExpiresAt = now, expires
		values, err := snapshotTable.Values(sqldb.Update, &snapshotRow{&done, nil, sn.Stored.Bytes}, string(sn.ID))
		if err != nil {
			return err
		}
		n, err := t.Exec(ctx, `UPDATE snapshots SET `+snapshotTable.Set+` WHERE id = ? AND kept = ''`, values...)
		if err != nil {
			return err
		}
		if n == 0 { // with its environment, say
			return sandbox.ErrSnapshotGivenUp
		}
		sn.CreatedAt, sn.ExpiresAt = now, expires
		return nil
	})
}

func (s *Snapshots) Begun(ctx context.Context, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	row := snapshotRow{Snapshot: &sandbox.Snapshot{}}
	err := snapshotTable.Scan(s.db.Read.Row(ctx, `SELECT `+snapshotTable.Selected+` FROM snapshots WHERE id = ? AND kept = ''`, string(id)), &row)
	return row.Snapshot, s.db.Read.Found("get a snapshot in progress", err, sandbox.ErrNoSnapshot)
}

func (s *Snapshots) Abandon(ctx context.Context, id sandbox.SnapshotID) error {
	return s.db.Exec(ctx, "abandon a snapshot", `DELETE FROM snapshots WHERE id = ? AND kept = ''`, string(id))
}

func (s *Snapshots) AbandonAll(ctx context.Context, executor string) error {
	return s.db.Exec(ctx, "abandon snapshots", `DELETE FROM snapshots WHERE executor = ? AND kept = ''`, executor)
}

func (s *Snapshots) Get(ctx context.Context, tenantID tenant.ID, environment string, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	sn, err := s.scan(s.db.Read.Row(ctx, `SELECT `+snapshotTable.Selected+` FROM snapshots WHERE tenant = ? AND environment = ? AND id = ? AND kept <> ''`,
		tenantID, environment, string(id)))
	return sn, s.db.Read.Found("get a snapshot", err, sandbox.ErrNoSnapshot)
}

func (s *Snapshots) List(ctx context.Context, f sandbox.SnapshotFilter) ([]*sandbox.Snapshot, string, error) {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	list := "snapshots/" + f.Tenant + "/" + f.Environment
	after := sqldb.Place{At: 1<<63 - 1}
	if f.Cursor != "" {
		var err error
		if after, err = sqldb.DecodeCursor(s.db.Seal, list, f.Cursor); err != nil {
			return nil, "", err
		}
	}
	page, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+snapshotTable.Selected+` FROM snapshots
		WHERE tenant = ? AND environment = ? AND kept <> '' AND (created_at < ? OR created_at = ? AND id < ?) ORDER BY created_at DESC, id DESC LIMIT ?`,
		f.Tenant, f.Environment, after.At, after.At, after.ID, f.Limit+1)
	if err != nil {
		return nil, "", s.db.Read.Wrap("list snapshots", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	last := page[len(page)-1]
	return page, sqldb.EncodeCursor(s.db.Seal, list, sqldb.Place{At: sqldb.Micros(last.CreatedAt), ID: string(last.ID)}), nil
}

func (s *Snapshots) Delete(ctx context.Context, tenantID tenant.ID, environment string, id sandbox.SnapshotID) error {
	return s.transact(ctx, "delete a snapshot", tenantID, func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `DELETE FROM snapshots WHERE tenant = ? AND environment = ? AND id = ? AND kept <> ''`, tenantID, environment, string(id))
		if err == nil && n == 0 {
			return sandbox.ErrNoSnapshot
		}
		if err != nil {
			return err
		}
		return snapshotLitter(ctx, t, tenantID)
	})
}

// DeleteSnapshotsOf deletes the snapshots of an environment.
func DeleteSnapshotsOf(ctx context.Context, t *sqldb.Tx, tenantID, environment string) error {
	n, err := t.Exec(ctx, `DELETE FROM snapshots WHERE tenant = ? AND environment = ?`, tenantID, environment)
	if err != nil || n == 0 {
		return err
	}
	return snapshotLitter(ctx, t, tenantID)
}

func (s *Snapshots) Expire(ctx context.Context, most int) (int, error) {
	n := 0
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		gone, err := sqldb.Select(ctx, t, sqldb.Value[string], `DELETE FROM snapshots WHERE seq IN
			(SELECT seq FROM snapshots WHERE expires_at <= atoll_now() AND kept <> '' ORDER BY expires_at LIMIT ?) RETURNING tenant`, most)
		if err != nil {
			return err
		}
		n = len(gone)
		for _, id := range gone {
			if err := snapshotLitter(ctx, t, id); err != nil {
				return err
			}
		}
		return nil
	})
	return n, s.db.Write.Wrap("expire snapshots", err)
}

// snapshotLitter notes that a tenant has, or may have, something kept that no record refers to.
func snapshotLitter(ctx context.Context, q sqldb.Querier, tenantID string) error {
	_, err := q.Exec(ctx, `INSERT INTO snapshot_litter (tenant, last) VALUES (?, atoll_now()) ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`, tenantID)
	return err
}

func (s *Snapshots) MarkGarbage(ctx context.Context, tenantID tenant.ID) error {
	return s.db.Write.Wrap("note litter", snapshotLitter(ctx, s.db.Write, tenantID))
}

func (s *Snapshots) TenantsWithGarbage(ctx context.Context) ([]tenant.ID, error) {
	all, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[string], `SELECT tenant FROM snapshot_litter ORDER BY last`)
	return all, s.db.Read.Wrap("list tenants with litter", err)
}

func (s *Snapshots) ReferencedStates(ctx context.Context, tenantID tenant.ID) ([]string, error) {
	rows, err := s.db.Read.Rows(ctx, `SELECT kept FROM snapshots WHERE tenant = ? AND kept <> ''
		UNION ALL SELECT kept FROM sandboxes WHERE tenant = ? AND kept <> '' AND state <> 'destroyed'`, tenantID, tenantID)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (string, error) {
		var text string
		if err := sc.Scan(&text); err != nil {
			return "", err
		}
		k, err := keptOf(text)
		if err != nil {
			return "", err
		}
		return k.State, nil
	})
	return all, s.db.Read.Wrap("list what is kept", err)
}

func (s *Snapshots) ClearGarbage(ctx context.Context, tenantID tenant.ID, age time.Duration) error {
	return s.db.Exec(ctx, "forget litter", `DELETE FROM snapshot_litter WHERE tenant = ? AND last < atoll_now() - ?`, tenantID, age.Microseconds())
}
