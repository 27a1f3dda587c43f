package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Settings are the settings that an operator changed for all servers, by name.
func (db *DB) Settings(ctx context.Context) (map[string]string, error) {
	type setting struct{ name, value string }
	rows, err := db.read.rows(ctx, `SELECT name, value FROM settings`)
	all, err := collect(rows, err, func(sc scanner) (s setting, err error) { return s, sc.Scan(&s.name, &s.value) })
	if err != nil {
		return nil, db.read.wrap("read the settings", err)
	}
	out := map[string]string{}
	for _, s := range all {
		out[s.name] = s.value
	}
	return out, nil
}

// SetSetting stores a setting, and UnsetSetting removes it. Both record e with the former value.
func (db *DB) SetSetting(ctx context.Context, name, value string, e tenant.PolicyEvent) error {
	return db.changeSetting(ctx, name, e, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, name, value, micros(now))
		return err
	})
}

// UnsetSetting removes a stored setting.
func (db *DB) UnsetSetting(ctx context.Context, name string, e tenant.PolicyEvent) error {
	return db.changeSetting(ctx, name, e, func(t *tx) error {
		return execOne(ctx, t, "stored setting", `DELETE FROM settings WHERE name = ?`, name)
	})
}

func (db *DB) changeSetting(ctx context.Context, name string, e tenant.PolicyEvent, change func(*tx) error) error {
	err := db.write.transact(ctx, func(t *tx) error {
		if err := t.row(ctx, `SELECT coalesce(max(value), '') FROM settings WHERE name = ?`, name).Scan(&e.Old); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		return insertEvent(ctx, t, e)
	})
	return db.write.wrap("change a setting", err)
}
