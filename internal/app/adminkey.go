package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// Recovery makes an admin key without one.
type Recovery struct {
	Settings     *config.Config
	Version      string // of this program
	Actor        string // recorded with the change
	RevokeOthers bool
	Keep         tenant.KeepKey
	Log          *slog.Logger
}

// Run writes to the records directly, also while a server uses them. It changes nothing where no
// server of this version has made records yet.
func (r Recovery) Run(ctx context.Context) (_ tenant.Key, key string, err error) {
	cfg, path := r.Settings, filepath.Join(r.Settings.DataDir, "atoll.db")
	switch running, err := localserver.Find(cfg.DataDir); {
	case err == nil && running.Version != r.Version:
		// Opening the records brings them up to date, under a server that does not know how.
		return tenant.Key{}, "", fault.New(fault.Conflict, "the server of %s has version %q and this command has %q: use the server's own 'atoll', or stop it first", cfg.DataDir, running.Version, r.Version)
	case err != nil && !errors.Is(err, localserver.ErrNone):
		return tenant.Key{}, "", err
	}
	if _, err := os.Stat(path); cfg.Database == "" && err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return tenant.Key{}, "", fault.New(fault.NotFound, "the data folder %s holds no records: name the server's folder with --data-dir, or start the server with 'atoll serve', which makes an admin key", cfg.DataDir)
		}
		return tenant.Key{}, "", err
	}
	if _, err := os.Stat(secretKeyFile(cfg)); cfg.SecretKey == "" && err != nil {
		return tenant.Key{}, "", fmt.Errorf("read the key that seals secrets: %w; run this command on the machine of the server, with its settings", err)
	}
	box, err := openSeal(cfg)
	if err != nil {
		return tenant.Key{}, "", fmt.Errorf("read the key that seals secrets: %w", err)
	}
	db, err := store.Open(ctx, store.Config{URL: cfg.Database, Path: path, Seal: box, Log: r.Log})
	if err != nil {
		return tenant.Key{}, "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	k, key, err := tenant.RecoverAdminKey(ctx, db.Tenants(), r.Actor, r.RevokeOthers, r.Keep)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		err = fmt.Errorf("%w: start the server with 'atoll serve', which makes an admin key", err)
	}
	return k, key, err
}
