// Package migrations has the schema of the database as migrations, a folder for each engine.
package migrations

import "embed"

// Files has the migrations in the folders sqlite and postgres. Never change a shipped one.
//
//go:embed sqlite postgres
var Files embed.FS
