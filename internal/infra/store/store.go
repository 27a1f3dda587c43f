// Package store opens the database with Atoll's records: SQLite by default, PostgreSQL when given a
// URL. It returns the stores of the records, which are in packages of their own.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/installation"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/vault"
	activitydb "github.com/atoll-run/atoll/internal/infra/store/activity"
	agentdb "github.com/atoll-run/atoll/internal/infra/store/agent"
	approvaldb "github.com/atoll-run/atoll/internal/infra/store/approval"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	breakerdb "github.com/atoll-run/atoll/internal/infra/store/breaker"
	executiondb "github.com/atoll-run/atoll/internal/infra/store/execution"
	idempotencydb "github.com/atoll-run/atoll/internal/infra/store/idempotency"
	installationdb "github.com/atoll-run/atoll/internal/infra/store/installation"
	modeldb "github.com/atoll-run/atoll/internal/infra/store/model"
	previewdb "github.com/atoll-run/atoll/internal/infra/store/preview"
	requirementdb "github.com/atoll-run/atoll/internal/infra/store/requirement"
	rundb "github.com/atoll-run/atoll/internal/infra/store/run"
	sandboxdb "github.com/atoll-run/atoll/internal/infra/store/sandbox"
	sessiondb "github.com/atoll-run/atoll/internal/infra/store/session"
	settingdb "github.com/atoll-run/atoll/internal/infra/store/setting"
	skilldb "github.com/atoll-run/atoll/internal/infra/store/skill"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	tenantdb "github.com/atoll-run/atoll/internal/infra/store/tenant"
	threaddb "github.com/atoll-run/atoll/internal/infra/store/thread"
	uploaddb "github.com/atoll-run/atoll/internal/infra/store/upload"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
	vaultdb "github.com/atoll-run/atoll/internal/infra/store/vault"
)

// Config says where the records are.
type Config struct {
	// URL of a PostgreSQL database (postgres://…); with none, Path is the file of
	// a SQLite database.
	URL  string
	Path string

	Seal sqldb.Sealer // seals secrets; required
	Log  *slog.Logger

	// Enqueue adds the delivery of an ended execution's webhook to the queue, in
	// the transaction that records its end. It may be called again when that
	// transaction is not committed. Nil if no execution has a webhook.
	Enqueue func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error
	// Tell does the same for a sealed message about a session; DB.OpenNotice opens it.
	Tell func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error

	// Connections to PostgreSQL at the same time; 0 for sqldb.DefaultConnections.
	Connections int
}

// DB is an open database. Its stores are safe for concurrent use.
type DB struct {
	db         *sqldb.DB
	audit      *auditdb.Store
	executions *executiondb.Store
	approvals  *approvaldb.Store
	sessions   *sessiondb.Store
	settings   *settingdb.Store
}

// Open opens the database, creates it or brings it up to date. It rejects a database that a newer
// version has written, and one that another key has sealed (ErrOtherKey).
func Open(ctx context.Context, c Config) (_ *DB, err error) {
	db, err := sqldb.Open(ctx, sqldb.Config{URL: c.URL, Path: c.Path, Connections: c.Connections, Seal: c.Seal, Log: c.Log})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err := checkKey(ctx, db); err != nil {
		return nil, fmt.Errorf("check the key for secrets: %w", err)
	}
	if err := tenantdb.PutBuiltInPlans(ctx, db); err != nil {
		return nil, fmt.Errorf("write the built-in plans: %w", err)
	}
	approvals := approvaldb.New(db)
	return &DB{db, auditdb.New(db), executiondb.New(db, c.Enqueue), approvals, sessiondb.New(db, approvals, c.Tell), settingdb.New(db)}, nil
}

// The stores of the domain.

func (db *DB) Activity() activity.Store         { return activitydb.New(db.db) }
func (db *DB) Agents() agent.Store              { return agentdb.New(db.db) }
func (db *DB) Approvals() approval.Store        { return db.approvals }
func (db *DB) Audit() audit.Store               { return db.audit }
func (db *DB) Breakers() breaker.Store          { return breakerdb.New(db.db) }
func (db *DB) Erasures() tenant.ErasureStore    { return tenantdb.NewErasures(db.db) }
func (db *DB) Executions() execution.Store      { return db.executions }
func (db *DB) Files() upload.Store              { return uploaddb.New(db.db) }
func (db *DB) Idempotency() idempotency.Store   { return idempotencydb.New(db.db) }
func (db *DB) Installation() installation.Store { return installationdb.New(db.db) }
func (db *DB) Models() model.Store              { return modeldb.New(db.db) }
func (db *DB) NodeEvents() sandbox.EventStore   { return sandboxdb.New(db.db) }
func (db *DB) PackageBuilds() requirement.Store { return requirementdb.New(db.db) }
func (db *DB) Previews() preview.Store          { return previewdb.New(db.db) }
func (db *DB) Runs() run.Store                  { return rundb.New(db.db, db.sessions, db.approvals) }
func (db *DB) Sandboxes() sandbox.Store         { return sandboxdb.New(db.db) }
func (db *DB) Sessions() session.Store          { return db.sessions }
func (db *DB) Skills() skill.Store              { return skilldb.New(db.db) }
func (db *DB) Snapshots() sandbox.SnapshotStore { return sandboxdb.NewSnapshots(db.db) }
func (db *DB) Tenants() tenant.Store            { return tenantdb.New(db.db) }
func (db *DB) Threads() thread.Records          { return threaddb.New(db.db) }
func (db *DB) Usage() usage.Store               { return usagedb.New(db.db) }
func (db *DB) Vaults() vault.Store              { return vaultdb.New(db.db) }

// SkillFiles implements execution.Skills.
func (db *DB) SkillFiles(ctx context.Context, tenant string, of execution.SkillRef) ([]execution.SkillFile, error) {
	return skilldb.New(db.db).SkillFiles(ctx, tenant, of)
}

var _ execution.Skills = (*DB)(nil)

// OpenNotice opens a message that Config.Tell received.
func (db *DB) OpenNotice(t tenant.ID, id string, sealed []byte) (*session.Notice, error) {
	return db.sessions.OpenNotice(t, id, sealed)
}

// Settings returns the settings that an operator changed for all servers, by name.
func (db *DB) Settings(ctx context.Context) (map[string]string, error) { return db.settings.All(ctx) }

// SettingContent returns the content that was stored with a setting.
func (db *DB) SettingContent(ctx context.Context, name string) ([]byte, error) {
	return db.settings.Content(ctx, name)
}

// SetSetting stores a setting, with the content of the file that it names; nil if it names none. It
// records e with the former value.
func (db *DB) SetSetting(ctx context.Context, name, value string, content []byte, e tenant.PolicyEvent) error {
	return db.settings.Set(ctx, name, value, content, e)
}

// UnsetSetting removes a stored setting. It records e with the former value.
func (db *DB) UnsetSetting(ctx context.Context, name string, e tenant.PolicyEvent) error {
	return db.settings.Unset(ctx, name, e)
}

// SQL returns the database for packages that bring their own queries and tables, such as the queue
// of jobs.
func (db *DB) SQL() *sql.DB { return db.db.Write.DB }

// Postgres reports whether the database is PostgreSQL, not SQLite.
func (db *DB) Postgres() bool { return db.db.Write.Postgres }

// OnChange has f called with the id of each session that this process changes, after the change
// is committed: a session has other events, or its turn or one of its threads began or ended. It
// is called with the ids of runs that end, too. f must not block. Call it before the first change.
func (db *DB) OnChange(f func(id string)) { db.db.Write.OnChange(f) }

// Ping returns nil if the database answers.
func (db *DB) Ping(ctx context.Context) error { return db.db.Ping(ctx) }

// Backup writes a copy of a SQLite database, as it is at this moment, to a file that must not exist.
// PostgreSQL has its own tools.
func (db *DB) Backup(ctx context.Context, path string) error { return db.db.Backup(ctx, path) }

// CopySQLite copies a database that this process has not opened. Another process, of any version,
// may be using it.
func CopySQLite(ctx context.Context, from, to string) error { return sqldb.CopySQLite(ctx, from, to) }

// Close writes waiting records and closes the database.
func (db *DB) Close() error { return db.db.Close() }
