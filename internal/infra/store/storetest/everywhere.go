package storetest

import (
	"testing"

	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/test/atolltest"
)

// Everywhere runs a test with SQLite and with a new database of PostgreSQL.
func Everywhere(t *testing.T, postgres *atolltest.SharedPostgres, test func(t *testing.T, db *store.DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		url, err := postgres.Get(t).Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		test(t, Postgres(t, url))
	})
}
