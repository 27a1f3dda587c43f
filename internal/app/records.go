package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// recordsModule opens the database, and creates the records that every start needs.
type recordsModule struct {
	*process

	db           *store.DB
	box          *seal.Box
	refusals     *audit.Refusals
	trail        *ratelimit.Trail
	authority    *tenant.Authority
	installation string // id that all servers with the same records have

	// The table sets these. The module jobs starts before anything is concluded.
	enqueue func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error
	notify  func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error
}

// Start implements module.Part.
func (m *recordsModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	cfg := m.cfg.Settings
	box, made, err := m.openKey()
	if err != nil {
		return fmt.Errorf("the key for secrets: %w", err)
	}
	m.box = box
	m.db, err = store.Open(ctx, store.Config{
		URL: cfg.Database, Path: m.path("atoll.db"), Connections: cfg.DatabaseConnections, Seal: box, Log: m.log,
		Enqueue: m.enqueue, Tell: m.notify,
	})
	if errors.Is(err, store.ErrOtherKey) {
		return m.otherKey(err, made)
	}
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { return m.db.Close() })
	// As rows of calls are recorded: whatever names a caller gave, the refusal is on record.
	m.refusals = audit.NewRefusals(func(ctx context.Context, r audit.Row) error { return m.db.Sandboxes().Record(ctx, r, usage.Entry{}) }, m.log)
	undo.Add(m.refusals.Close)
	m.trail = &ratelimit.Trail{Count: m.db.Usage().Recorded, Room: cfg.AuditRoom}
	m.authority = tenant.NewAuthority(m.db.Tenants())
	if m.installation, err = m.db.Installation().ID(ctx); err != nil {
		return err
	}
	return m.setup().Run(ctx)
}

func (m *recordsModule) setup() tenant.Setup {
	cfg := m.cfg.Settings
	return tenant.Setup{
		Store: m.db.Tenants(), DevKey: m.cfg.DevKey,
		Environment: tenant.Environment{Image: cfg.Image, Limits: cfg.Limits(), Env: cfg.EnvVars},
	}
}

// openKey opens the key that seals secrets: that of the settings, or the one in the data folder,
// which the first start makes.
func (m *recordsModule) openKey() (_ *seal.Box, made bool, err error) {
	if m.cfg.Settings.SecretKey == "" {
		_, missing := os.Stat(m.keyFile())
		made = errors.Is(missing, fs.ErrNotExist)
	}
	box, err := openSeal(m.cfg.Settings)
	return box, made, err
}

func openSeal(cfg *config.Config) (*seal.Box, error) {
	var key []byte
	var err error
	if cfg.SecretKey != "" {
		key, err = seal.ParseKey(cfg.SecretKey)
	} else {
		key, err = seal.KeyFile(secretKeyFile(cfg))
	}
	if err != nil {
		return nil, err
	}
	return seal.New(key)
}

func secretKeyFile(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "secret-key") }

func (m *recordsModule) keyFile() string { return secretKeyFile(m.cfg.Settings) }

// otherKey says what to do about records that another key has sealed. A key made
// for them just now is of no use.
func (m *recordsModule) otherKey(err error, made bool) error {
	const lost = "see docs/operate/runbook.md if the key is lost for good"
	switch {
	case made:
		return errors.Join(fmt.Errorf("%w: %s is missing; restore it from a backup or from another machine that uses the same database, or set secret_key to that key; %s",
			err, m.keyFile(), lost), os.Remove(m.keyFile()))
	case m.cfg.Settings.SecretKey != "":
		return fmt.Errorf("%w: set secret_key to the former key, or unset it if that key is in %s; %s", err, m.keyFile(), lost)
	default:
		return fmt.Errorf("%w: restore the right %s from a backup or from another machine that uses the same database, or set secret_key to that key; %s",
			err, m.keyFile(), lost)
	}
}
