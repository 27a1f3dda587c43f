package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// snapshots is the sandbox.SnapshotStore.
type snapshots struct{ db *DB }

var _ sandbox.SnapshotStore = (*snapshots)(nil)

// Snapshots is the store of snapshots of named sandboxes.
func (db *DB) Snapshots() sandbox.SnapshotStore { return &snapshots{db} }

// snapshotRow is a snapshot with its variables as they are stored, sealed.
type snapshotRow struct {
	*sandbox.Snapshot
	env   []byte
	bytes int64 // that it has or is going to have, for sums
}

// snapshotTable is the table of snapshots. One whose kept is empty is being made.
var snapshotTable = newTable("snapshots",
	col("id", fixed, func(r *snapshotRow) any { return &r.ID }),
	col("tenant", fixed, func(r *snapshotRow) any { return &r.Tenant }),
	col("environment", fixed, func(r *snapshotRow) any { return &r.Environment }),
	col("key_id", fixed, func(r *snapshotRow) any { return &r.Key }),
	col("executor", fixed, func(r *snapshotRow) any { return &r.Executor }),
	col("sandbox", fixed, func(r *snapshotRow) any { return &r.Sandbox }),
	col("session", fixed, func(r *snapshotRow) any { return &r.Session }),
	col("name", fixed, func(r *snapshotRow) any { return &r.Name }),
	col("image", fixed, func(r *snapshotRow) any { return &r.Image }),
	col("asked", fixed, func(r *snapshotRow) any { return &r.ImageAlias }),
	col("limits", fixed, func(r *snapshotRow) any { return limitsAt(&r.Limits) }),
	col("disk_limit", fixed, func(r *snapshotRow) any { return &r.DiskLimit }),
	col("own_cpu", fixed, func(r *snapshotRow) any { return &r.Own.CPU }),
	col("own_memory", fixed, func(r *snapshotRow) any { return &r.Own.Memory }),
	col("own_disk", fixed, func(r *snapshotRow) any { return &r.Own.Disk }),
	col("permissions", fixed, func(r *snapshotRow) any { return permissionsAt(&r.Permissions) }),
	col("connected", fixed, func(r *snapshotRow) any { return &r.Connected }),
	col("env", fixed, func(r *snapshotRow) any { return &r.env }),
	col("sleep_after", fixed, func(r *snapshotRow) any { return durationAt(&r.SleepAfter) }),
	col("mounts", fixed, func(r *snapshotRow) any { return mountsAt(&r.Mounts) }),
	col("kept", all, func(r *snapshotRow) any { return storedCopyAt(&r.Stored) }),
	col("bytes", insert|update, func(r *snapshotRow) any { return &r.bytes }),
	col("detail", all, func(r *snapshotRow) any { return storableAt(&r.Detail) }),
	col("created_at", all, func(r *snapshotRow) any { return timeAt(&r.CreatedAt) }),
	col("expires_at", all, func(r *snapshotRow) any { return maybeTimeAt(&r.ExpiresAt) }),
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

// keptOf reads a keptRow; none of "".
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
func maybeStoredCopyAt(k **sandbox.StoredCopy) codec {
	write := func(k *sandbox.StoredCopy) (any, error) {
		if k == nil {
			return "", nil
		}
		return jsonOf(keptRow(*k), false)
	}
	return coded[*sandbox.StoredCopy, string]{k, keptOf, write}
}

// storedCopyAt is a keptRow; "" for the zero value.
func storedCopyAt(k *sandbox.StoredCopy) codec {
	read := func(text string) (sandbox.StoredCopy, error) {
		k, err := keptOf(text)
		if k == nil {
			return sandbox.StoredCopy{}, err
		}
		return *k, err
	}
	write := func(k sandbox.StoredCopy) (any, error) { return jsonOf(keptRow(k), k == sandbox.StoredCopy{}) }
	return coded[sandbox.StoredCopy, string]{k, read, write}
}

func (s *snapshots) scan(sc scanner) (*sandbox.Snapshot, error) {
	row := snapshotRow{Snapshot: &sandbox.Snapshot{}}
	if err := snapshotTable.scan(sc, &row); err != nil {
		return nil, about(err, "record", string(row.ID))
	}
	var err error
	row.Env, err = s.db.openEnv(snapshotPlace(row.ID), row.env)
	return row.Snapshot, about(err, "variables", string(row.ID))
}

func snapshotPlace(id sandbox.SnapshotID) string { return "snapshots/env/" + string(id) }

// transact runs do while no other snapshot of the tenant is made.
func (s *snapshots) transact(ctx context.Context, step, tenantID string, do func(t *tx) error) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("snapshots", tenantID)); err != nil {
				return err
			}
		}
		return do(t)
	})
	return s.db.write.wrap(step, err)
}

func (s *snapshots) Begin(ctx context.Context, sn *sandbox.Snapshot, room sandbox.SnapshotQuota) error {
	const step = "record a snapshot"
	env, err := s.db.sealEnv(snapshotPlace(sn.ID), sn.Env)
	if err != nil {
		return s.db.write.wrap(step, err)
	}
	return s.transact(ctx, step, sn.Tenant, func(t *tx) error {
		if err := snapshotRoom(ctx, t, sn, room); err != nil {
			return err
		}
		if err := snapshotLitter(ctx, t, sn.Tenant); err != nil {
			return err
		}
		now, err := t.dialect().clock(ctx, t)
		if err != nil {
			return err
		}
		begun := *sn
		begun.Stored, begun.Detail, begun.CreatedAt, begun.ExpiresAt = sandbox.StoredCopy{}, "", now, nil
		values, err := snapshotTable.values(insert, &snapshotRow{&begun, env, sn.Stored.Bytes})
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, snapshotTable.insert, values...)
		return err
	})
}

// snapshotRoom refuses a snapshot for which its tenant has no room.
func snapshotRoom(ctx context.Context, t *tx, sn *sandbox.Snapshot, room sandbox.SnapshotQuota) error {
	var n int
	var used int64
	if err := t.row(ctx, `SELECT count(*), coalesce(sum(bytes), 0) FROM snapshots WHERE tenant = ? AND id <> ?`, sn.Tenant, string(sn.ID)).Scan(&n, &used); err != nil {
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

func (s *snapshots) Finish(ctx context.Context, sn *sandbox.Snapshot, keep time.Duration, room sandbox.SnapshotQuota) error {
	const step = "finish a snapshot"
	return s.transact(ctx, step, sn.Tenant, func(t *tx) error {
		if err := snapshotRoom(ctx, t, sn, room); err != nil {
			return err
		}
		now, err := t.dialect().clock(ctx, t)
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
		values, err := snapshotTable.values(update, &snapshotRow{&done, nil, sn.Stored.Bytes}, string(sn.ID))
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, `UPDATE snapshots SET `+snapshotTable.set+` WHERE id = ? AND kept = ''`, values...)
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

func (s *snapshots) Abandon(ctx context.Context, id sandbox.SnapshotID) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM snapshots WHERE id = ? AND kept = ''`, string(id))
	return s.db.write.wrap("abandon a snapshot", err)
}

func (s *snapshots) AbandonAll(ctx context.Context, executor string) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM snapshots WHERE executor = ? AND kept = ''`, executor)
	return s.db.write.wrap("abandon snapshots", err)
}

func (s *snapshots) Get(ctx context.Context, tenantID tenant.ID, environment string, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	sn, err := s.scan(s.db.read.row(ctx, `SELECT `+snapshotTable.selected+` FROM snapshots WHERE tenant = ? AND environment = ? AND id = ? AND kept <> ''`,
		tenantID, environment, string(id)))
	return sn, s.db.read.found("get a snapshot", err, sandbox.ErrNoSnapshot)
}

func (s *snapshots) List(ctx context.Context, f sandbox.SnapshotFilter) ([]*sandbox.Snapshot, string, error) {
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	list := "snapshots/" + f.Tenant + "/" + f.Environment
	after := place{at: 1<<63 - 1}
	if f.Cursor != "" {
		var err error
		if after, err = decodeCursor(s.db.seal, list, f.Cursor); err != nil {
			return nil, "", err
		}
	}
	rows, err := s.db.read.rows(ctx, `SELECT `+snapshotTable.selected+` FROM snapshots
		WHERE tenant = ? AND environment = ? AND kept <> '' AND (created_at < ? OR created_at = ? AND id < ?) ORDER BY created_at DESC, id DESC LIMIT ?`,
		f.Tenant, f.Environment, after.at, after.at, after.id, f.Limit+1)
	page, err := collect(rows, err, s.scan)
	if err != nil {
		return nil, "", s.db.read.wrap("list snapshots", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	last := page[len(page)-1]
	return page, encodeCursor(s.db.seal, list, place{micros(last.CreatedAt), string(last.ID)}), nil
}

func (s *snapshots) Delete(ctx context.Context, tenantID tenant.ID, environment string, id sandbox.SnapshotID) error {
	return s.transact(ctx, "delete a snapshot", tenantID, func(t *tx) error {
		n, err := t.exec(ctx, `DELETE FROM snapshots WHERE tenant = ? AND environment = ? AND id = ? AND kept <> ''`, tenantID, environment, string(id))
		if err == nil && n == 0 {
			return sandbox.ErrNoSnapshot
		}
		if err != nil {
			return err
		}
		return snapshotLitter(ctx, t, tenantID)
	})
}

// deleteSnapshotsOf deletes those of an environment, which no caller could use.
func deleteSnapshotsOf(ctx context.Context, t *tx, tenantID, environment string) error {
	n, err := t.exec(ctx, `DELETE FROM snapshots WHERE tenant = ? AND environment = ?`, tenantID, environment)
	if err != nil || n == 0 {
		return err
	}
	return snapshotLitter(ctx, t, tenantID)
}

func (s *snapshots) Expire(ctx context.Context, most int) (int, error) {
	n := 0
	err := s.db.write.transact(ctx, func(t *tx) error {
		rows, err := t.rows(ctx, `DELETE FROM snapshots WHERE seq IN
			(SELECT seq FROM snapshots WHERE expires_at <= atoll_now() AND kept <> '' ORDER BY expires_at LIMIT ?) RETURNING tenant`, most)
		gone, err := collect(rows, err, func(sc scanner) (id string, err error) { return id, sc.Scan(&id) })
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
	return n, s.db.write.wrap("expire snapshots", err)
}

// snapshotLitter notes that a tenant has, or may have, something kept that no record refers to.
func snapshotLitter(ctx context.Context, q querier, tenantID string) error {
	_, err := q.exec(ctx, `INSERT INTO snapshot_litter (tenant, last) VALUES (?, atoll_now()) ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`, tenantID)
	return err
}

func (s *snapshots) MarkGarbage(ctx context.Context, tenantID tenant.ID) error {
	return s.db.write.wrap("note litter", snapshotLitter(ctx, s.db.write, tenantID))
}

func (s *snapshots) TenantsWithGarbage(ctx context.Context) ([]tenant.ID, error) {
	rows, err := s.db.read.rows(ctx, `SELECT tenant FROM snapshot_litter ORDER BY last`)
	all, err := collect(rows, err, func(sc scanner) (t string, err error) { return t, sc.Scan(&t) })
	return all, s.db.read.wrap("list tenants with litter", err)
}

func (s *snapshots) ReferencedStates(ctx context.Context, tenantID tenant.ID) ([]string, error) {
	rows, err := s.db.read.rows(ctx, `SELECT kept FROM snapshots WHERE tenant = ? AND kept <> ''
		UNION ALL SELECT kept FROM sandboxes WHERE tenant = ? AND kept <> '' AND state <> 'destroyed'`, tenantID, tenantID)
	all, err := collect(rows, err, func(sc scanner) (string, error) {
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
	return all, s.db.read.wrap("list what is kept", err)
}

func (s *snapshots) ClearGarbage(ctx context.Context, tenantID tenant.ID, age time.Duration) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM snapshot_litter WHERE tenant = ? AND last < atoll_now() - ?`, tenantID, age.Microseconds())
	return s.db.write.wrap("forget litter", err)
}
