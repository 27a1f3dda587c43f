package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	executiondb "github.com/atoll-run/atoll/internal/infra/store/execution"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	tenantdb "github.com/atoll-run/atoll/internal/infra/store/tenant"
)

// ErrOtherKey says that the records were sealed with another key than
// Config.Seal's: neither key opens what the other sealed.
var ErrOtherKey = errors.New("the secrets in the records are sealed with another key than the one given")

// checkKey refuses any key but the one that the records began with, and notes
// that where it is not noted yet. Of several processes at their first start one
// decides.
func checkKey(ctx context.Context, db *sqldb.DB) error {
	return db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		const query = `SELECT fingerprint FROM secret_key`
		var noted string
		err := t.Row(ctx, query).Scan(&noted)
		if errors.Is(err, sql.ErrNoRows) {
			if err := opensAll(ctx, db, t); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, `INSERT INTO secret_key (only_row, fingerprint) VALUES (1, ?) ON CONFLICT (only_row) DO NOTHING`, db.Seal.Fingerprint()); err != nil {
				return err
			}
			err = t.Row(ctx, query).Scan(&noted)
		}
		if err != nil {
			return err
		}
		if noted != db.Seal.Fingerprint() {
			return fmt.Errorf("%w (%.8s, not %.8s)", ErrOtherKey, noted, db.Seal.Fingerprint())
		}
		return nil
	})
}

// sealed are the values in the records that were sealed, the last ones first.
var sealed = []struct {
	query string
	place func(id string) string
}{
	{`SELECT id, secrets FROM environments WHERE secrets IS NOT NULL ORDER BY seq DESC`, tenantdb.SecretsPlace},
	{`SELECT id, webhook_secret FROM keys WHERE webhook_secret IS NOT NULL ORDER BY seq DESC`, tenantdb.KeyPlace},
	// There may be millions of these, and keys keep what most of them have.
	{`SELECT trace_id, webhook_secret FROM executions WHERE webhook_secret IS NOT NULL ORDER BY seq DESC LIMIT 100`, executiondb.WebhookPlace},
}

// opensAll reports whether the key opens what is in records that do not say
// which one it takes: those of versions that did not note it.
func opensAll(ctx context.Context, db *sqldb.DB, t *sqldb.Tx) error {
	for _, s := range sealed {
		rows, err := t.Rows(ctx, s.query)
		_, err = sqldb.Collect(rows, err, func(sc sqldb.Scanner) (none struct{}, err error) {
			var id string
			var value []byte
			if err := sc.Scan(&id, &value); err != nil {
				return none, err
			}
			if _, err := db.Seal.Open(value, s.place(id)); err != nil {
				return none, fmt.Errorf("%w (seen at %s)", ErrOtherKey, id)
			}
			return none, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
