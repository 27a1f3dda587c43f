package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/infra/store"
)

// fillKey is the metadata that filled records have, with one of fillValues
// values.
const (
	fillKey    = "order"
	fillValues = 1000
)

// fillDialect is where the two engines differ in making many rows.
type fillDialect struct{ series, id, digest, text string }

var (
	sqliteFill = fillDialect{
		series: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})",
		id:     "printf('trc_%032x', i)", digest: "zeroblob(32)", text: "CAST(i % {values} AS TEXT)",
	}
	postgresFill = fillDialect{
		series: "WITH n(i) AS (SELECT generate_series(1, {count}))",
		id:     "'trc_' || lpad(to_hex(i), 32, '0')", digest: "decode(repeat('00', 32), 'hex')", text: "CAST(i % {values} AS TEXT)",
	}
)

// fill writes n ended executions of a tenant straight into the tables: through
// the front door it would take an hour.
func fill(ctx context.Context, db *store.DB, tenant string, n int) error {
	d := sqliteFill
	if db.Postgres() {
		d = postgresFill
	}
	words := strings.NewReplacer(
		"{series}", d.series, "{id}", d.id, "{digest}", d.digest, "{text}", d.text,
		"{count}", fmt.Sprint(n), "{values}", fmt.Sprint(fillValues), "{key}", fillKey, "{tenant}", tenant,
		"{began}", fmt.Sprint(time.Now().Add(-24*time.Hour).UnixMicro()),
	)
	return inTx(ctx, db.SQL(), func(tx *sql.Tx) error {
		for _, q := range []string{
			`INSERT INTO executions (trace_id, tenant, key_id, environment, source, delivery, agent, turn, language, timeout,
				metadata, code_sha256, cpu, memory, webhook_url, webhook_status, status, created_at, completed_at)
			{series} SELECT {id}, '{tenant}', 'key_0', 'env_0', 'execute', 'inline', '', '', 'python', 60000000,
				'{"{key}":"' || {text} || '"}', {digest}, 1, 536870912, '', '', 'success', {began} + i * 1000, {began} + i * 1000 + 500 FROM n`,
			`INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id)
			{series} SELECT '{tenant}', '{key}', {text}, {began} + i * 1000, {id} FROM n`,
			`ANALYZE`,
		} {
			if _, err := tx.ExecContext(ctx, words.Replace(words.Replace(q))); err != nil {
				return err
			}
		}
		return nil
	})
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
