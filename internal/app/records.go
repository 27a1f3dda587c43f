package app

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	_ "github.com/atoll-run/atoll/internal/infra/blob/provider" // gs:// and azblob://
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// openID reads the name this installation has on the bus, or gives it one.
func (s *Server) openID(context.Context) error {
	path := s.path("executor-id")
	kept, err := os.ReadFile(path)
	if s.id = strings.TrimSpace(string(kept)); err == nil && s.id != "" {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.id = tenant.NewID("exe")
	return os.WriteFile(path, []byte(s.id+"\n"), 0o600)
}

// openRecords opens the database and sees to what every start begins with.
func (s *Server) openRecords(ctx context.Context) (err error) {
	cfg := s.cfg.Settings
	box, made, err := s.openKey()
	if err != nil {
		return fmt.Errorf("the key for secrets: %w", err)
	}
	s.box = box
	s.db, err = store.Open(ctx, store.Config{
		URL: cfg.Database, Path: s.path("atoll.db"), Connections: cfg.DatabaseConnections, Seal: box, Log: s.log,
		Enqueue: func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error {
			return s.jobs.Enqueue(ctx, tx, e) // jobs are opened before anything is concluded
		},
		Tell: func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error {
			return s.jobs.Notify(ctx, tx, t, id, sealed) // likewise
		},
	})
	if errors.Is(err, store.ErrOtherKey) {
		return s.otherKey(err, made)
	}
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.db.Close() })
	// As rows of calls are recorded: whatever names a caller gave, the refusal is on record.
	s.refusals = audit.NewRefusals(func(ctx context.Context, r audit.Row) error { return s.db.Sandboxes().Record(ctx, r, usage.Entry{}) }, s.log)
	s.later(s.refusals.Close)
	s.trail = &ratelimit.Trail{Count: s.db.Usage().Recorded, Room: cfg.AuditRoom}
	s.authority = tenant.NewAuthority(s.db.Tenants())
	if s.installation, err = s.db.Installation().ID(ctx); err != nil {
		return err
	}
	return s.setup().Run(ctx)
}

func (s *Server) setup() tenant.Setup {
	cfg := s.cfg.Settings
	return tenant.Setup{
		Store: s.db.Tenants(), DevKey: s.cfg.DevKey,
		Environment: tenant.Environment{Image: cfg.Image, Limits: cfg.Limits(), Env: cfg.EnvVars},
	}
}

// openAdminKey makes the first key that administers.
func (s *Server) openAdminKey(ctx context.Context) (err error) {
	s.AdminKey, err = s.setup().AdminKey(ctx, s.cfg.KeepAdminKey)
	return err
}

// openKey opens the key that seals secrets: that of the settings, or the one in the data folder,
// which the first start makes.
func (s *Server) openKey() (_ *seal.Box, made bool, err error) {
	if s.cfg.Settings.SecretKey == "" {
		_, missing := os.Stat(s.keyFile())
		made = errors.Is(missing, fs.ErrNotExist)
	}
	box, err := openSeal(s.cfg.Settings)
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

func (s *Server) keyFile() string { return secretKeyFile(s.cfg.Settings) }

// otherKey says what to do about records that another key has sealed. A key made
// for them just now is of no use.
func (s *Server) otherKey(err error, made bool) error {
	const lost = "see docs/operate/runbook.md if the key is lost for good"
	switch {
	case made:
		return errors.Join(fmt.Errorf("%w: %s is missing; restore it from a backup or from another machine that uses the same database, or set secret_key to that key; %s",
			err, s.keyFile(), lost), os.Remove(s.keyFile()))
	case s.cfg.Settings.SecretKey != "":
		return fmt.Errorf("%w: set secret_key to the former key, or unset it if that key is in %s; %s", err, s.keyFile(), lost)
	default:
		return fmt.Errorf("%w: restore the right %s from a backup or from another machine that uses the same database, or set secret_key to that key; %s",
			err, s.keyFile(), lost)
	}
}

// openStorage finds out where volumes are, and where connections may lead.
func (s *Server) openStorage(ctx context.Context) (err error) {
	if s.buckets.Allow, err = outbound.Parse(s.cfg.Settings.StorageAllow); err != nil {
		return fmt.Errorf("storage_allow: %w", err)
	}
	if s.volumes.Owners, err = idmap.Find(); err != nil {
		s.log.Warn("cannot mount storage in sandboxes", "reason", err)
		return nil
	}
	where := s.cfg.Settings.Volumes
	if err := CheckVolumes(ctx, where); err != nil {
		return err
	}
	switch {
	case where == "":
		where = s.path("volumes")
	case strings.Contains(where, "://"):
		if s.buckets.Volumes, err = blob.OpenBucket(ctx, where); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		s.later(func(context.Context) error { return s.buckets.Volumes.Close() })
		if s.member.Volumes, err = blob.Claim(ctx, s.buckets.Volumes, s.installation, s.id); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		return nil
	}
	s.volumes.Dir = where
	if s.cfg.Settings.Volumes != "" {
		if s.member.Volumes, err = blob.ClaimFolder(ctx, where, s.installation, s.id); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
	}
	return nil
}

// openWebhooks makes what delivers webhooks.
func (s *Server) openWebhooks(context.Context) (err error) {
	cfg := s.cfg.Settings
	if cfg.WebhookCA != "" {
		if s.configuredWebhookCA, err = os.ReadFile(cfg.WebhookCA); err != nil {
			return fmt.Errorf("webhook_ca: %w", err)
		}
	}
	authorities, err := withSystem(s.configuredWebhookCA)
	if err != nil {
		return fmt.Errorf("webhook_ca: %s: %w", cfg.WebhookCA, err)
	}
	s.webhooks, err = webhook.New(webhook.Config{
		Version: s.cfg.Version, MaxOutput: int64(cfg.MaxOutput), RootCAs: authorities, Allow: cfg.WebhookAllow,
		Open: func(ctx context.Context, name string) (io.ReadCloser, error) { return s.blobs.Open(ctx, name, 0, -1) },
	})
	if err != nil {
		return fmt.Errorf("webhook_allow: %w", err)
	}
	s.later(func(context.Context) error { s.webhooks.Close(); return nil })
	s.allow.webhooks = s.webhooks.Allowed()
	return nil
}

// withSystem returns the machine's authorities with those of a bundle. It returns nil, which stands for
// the machine's, for a nil bundle.
func withSystem(bundle []byte) (*x509.CertPool, error) {
	if bundle == nil {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err == nil && !pool.AppendCertsFromPEM(bundle) {
		err = errors.New("it has no certificate")
	}
	return pool, err
}

// prompt is the record of executions; it has webhooks delivered as soon as the
// end they tell of is recorded.
type prompt struct {
	execution.Store
	poke func()
}

// Conclude implements execution.Store.
func (p prompt) Conclude(ctx context.Context, r execution.Result, follow func(*execution.Execution) execution.Consequences) (*execution.Execution, bool, error) {
	told := false
	e, first, err := p.Store.Conclude(ctx, r, func(e *execution.Execution) execution.Consequences {
		c := follow(e)
		told = c.Webhook
		return c
	})
	if err == nil && first && told {
		p.poke()
	}
	return e, first, err
}
