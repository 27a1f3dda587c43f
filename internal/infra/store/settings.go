package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Settings are the settings that an operator changed for all servers, by name.
func (db *DB) Settings(ctx context.Context) (map[string]string, error) {
	type setting struct{ name, value string }
	rows, err := db.read.rows(ctx, `SELECT name, value FROM settings WHERE name NOT LIKE '%`+contentSuffix+`'`)
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

// contentSuffix ends the names of the rows with the content of settings. They are apart because
// every server reads the values every few seconds.
const contentSuffix = ".content"

// SettingContent returns the content that was stored with a setting.
func (db *DB) SettingContent(ctx context.Context, name string) ([]byte, error) {
	var content string
	err := db.read.row(ctx, `SELECT value FROM settings WHERE name = ?`, name+contentSuffix).Scan(&content)
	return []byte(content), db.read.wrap("read the content of a setting", err)
}

// SetSetting stores a setting, with the content of the file that it names, if it names one, and
// UnsetSetting removes it. Both record e with the former value.
func (db *DB) SetSetting(ctx context.Context, name, value string, content []byte, e tenant.PolicyEvent) error {
	return db.changeSetting(ctx, name, e, func(t *tx) error {
		if err := setSetting(ctx, t, name, value); err != nil || content == nil {
			return err
		}
		return setSetting(ctx, t, name+contentSuffix, string(content))
	})
}

func setSetting(ctx context.Context, t *tx, name, value string) error {
	now, err := t.pool.clock(ctx, t)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, name, value, micros(now))
	return err
}

// UnsetSetting removes a stored setting.
func (db *DB) UnsetSetting(ctx context.Context, name string, e tenant.PolicyEvent) error {
	return db.changeSetting(ctx, name, e, func(t *tx) error {
		return execOne(ctx, t, fault.New(fault.NotFound, "stored setting not found"), `DELETE FROM settings WHERE name = ?`, name)
	})
}

func (db *DB) changeSetting(ctx context.Context, name string, e tenant.PolicyEvent, change func(*tx) error) error {
	err := db.write.transact(ctx, func(t *tx) error {
		if err := t.row(ctx, `SELECT coalesce(max(value), '') FROM settings WHERE name = ?`, name).Scan(&e.Old); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM settings WHERE name = ?`, name+contentSuffix); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		return insertEvent(ctx, t, e)
	})
	return db.write.wrap("change a setting", err)
}
