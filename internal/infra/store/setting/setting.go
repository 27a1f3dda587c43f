// Package setting stores the settings that an operator changed for all servers.
package setting

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store stores the settings that an operator changed for all servers.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

type setting struct{ name, value string }

var settingView = sqldb.NewView(
	sqldb.Col("name", sqldb.Read, func(s *setting) any { return &s.name }),
	sqldb.Col("value", sqldb.Read, func(s *setting) any { return &s.value }),
)

// All returns the values of the settings that are stored, by name.
func (s *Store) All(ctx context.Context) (map[string]string, error) {
	all, err := sqldb.Select(ctx, s.db.Read, settingView.Row, `SELECT `+settingView.Selected+` FROM settings WHERE name NOT LIKE '%`+contentSuffix+`'`)
	if err != nil {
		return nil, s.db.Read.Wrap("read the settings", err)
	}
	out := map[string]string{}
	for _, r := range all {
		out[r.name] = r.value
	}
	return out, nil
}

// contentSuffix ends the names of the rows with the content of settings. They are apart because
// every server reads the values every few seconds.
const contentSuffix = ".content"

// Content returns the content that was stored with a setting.
func (s *Store) Content(ctx context.Context, name string) ([]byte, error) {
	var content string
	err := s.db.Read.Row(ctx, `SELECT value FROM settings WHERE name = ?`, name+contentSuffix).Scan(&content)
	return []byte(content), s.db.Read.Wrap("read the content of a setting", err)
}

// Set stores a setting, with the content of the file that it names; nil if it names none. It records
// e with the former value.
func (s *Store) Set(ctx context.Context, name, value string, content []byte, e tenant.PolicyEvent) error {
	return s.change(ctx, name, e, func(t *sqldb.Tx) error {
		if err := setSetting(ctx, t, name, value); err != nil || content == nil {
			return err
		}
		return setSetting(ctx, t, name+contentSuffix, string(content))
	})
}

func setSetting(ctx context.Context, t *sqldb.Tx, name, value string) error {
	now, err := t.Clock(ctx)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, name, value, sqldb.Micros(now))
	return err
}

// Unset removes a stored setting. It records e with the former value.
func (s *Store) Unset(ctx context.Context, name string, e tenant.PolicyEvent) error {
	return s.change(ctx, name, e, func(t *sqldb.Tx) error {
		return sqldb.ExecOne(ctx, t, fault.New(fault.NotFound, "stored setting not found"), `DELETE FROM settings WHERE name = ?`, name)
	})
}

func (s *Store) change(ctx context.Context, name string, e tenant.PolicyEvent, change func(*sqldb.Tx) error) error {
	return s.db.Transact(ctx, "change a setting", func(t *sqldb.Tx) error {
		if err := t.Row(ctx, `SELECT coalesce(max(value), '') FROM settings WHERE name = ?`, name).Scan(&e.Old); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM settings WHERE name = ?`, name+contentSuffix); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, e)
	})
}
