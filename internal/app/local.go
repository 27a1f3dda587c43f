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

// Local changes the records of this machine's server without a key: the right to write to its data
// folder or database is the right to do so.
type Local struct {
	Settings *config.Config
	Version  string // of this program
	Actor    string // recorded with the change
	Log      *slog.Logger
}

// open opens the records, also while a server of this version uses them. It changes nothing where
// no server has made records yet.
func (l Local) open(ctx context.Context) (*store.DB, error) {
	cfg, path := l.Settings, filepath.Join(l.Settings.DataDir, "atoll.db")
	switch running, err := localserver.Find(cfg.DataDir); {
	case err == nil && running.Version != l.Version:
		// Opening the records brings them up to date, under a server that does not know how.
		return nil, fault.New(fault.Conflict, "the server of %s has version %q and this command has version %q: use the server's 'atoll' binary, or stop the server first", cfg.DataDir, running.Version, l.Version)
	case err != nil && !errors.Is(err, localserver.ErrNone):
		return nil, err
	}
	if _, err := os.Stat(path); cfg.OwnRecords() && err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "the data folder %s holds no records: name the server's folder with --data-dir, or start the server with 'atoll serve', which makes an admin key", cfg.DataDir)
		}
		return nil, err
	}
	if _, err := os.Stat(secretKeyFile(cfg)); cfg.SecretKey == "" && err != nil {
		return nil, fmt.Errorf("read the key that seals secrets: %w; run this command on the machine of the server, with its settings", err)
	}
	box, err := openSeal(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the key that seals secrets: %w", err)
	}
	return store.Open(ctx, store.Config{URL: cfg.Database, Path: path, Seal: box, Log: l.Log})
}

// RecoverAdminKey makes another admin key. revokeOthers revokes the other ones.
func (l Local) RecoverAdminKey(ctx context.Context, revokeOthers bool, keep tenant.KeepKey) (_ tenant.Key, key string, err error) {
	db, err := l.open(ctx)
	if err != nil {
		return tenant.Key{}, "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	k, key, err := tenant.RecoverAdminKey(ctx, db.Tenants(), l.Actor, revokeOthers, keep)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		err = fmt.Errorf("%w: start the server with 'atoll serve', which makes an admin key", err)
	}
	return k, key, err
}
