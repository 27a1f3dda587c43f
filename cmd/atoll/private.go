package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
)

// private is what a server of one command is made of, beside the server of the
// data folder if there is one: its images and the place of its sandboxes, where
// any later process sweeps them, and records of its own.
type private struct {
	cfg      *config.Config
	images   *image.Store
	platform engine.Platform
	key      string

	records string
	lock    *os.File
}

// privateGrace is how long the end of a command waits for calls that it has
// cancelled.
const privateGrace = 5 * time.Second

func openPrivate(ctx context.Context, from *config.Config, log *slog.Logger) (*private, error) {
	images, err := readyImages(ctx, from, log)
	if err != nil {
		return nil, err
	}
	if _, err := images.Get(from.Image); fault.KindOf(err) == fault.NotFound {
		return nil, noImage(from, "run the sandboxes on a server with --base-url")
	}
	own := *from
	p := &private{cfg: &own, images: images, platform: platform(from, engine.NewName(), log), key: tenant.NewKey()}
	if err := p.makeRecords(filepath.Join(from.DataDir, "mcp")); err != nil {
		return nil, fmt.Errorf("create this command's database: %w", err)
	}
	own.Role, own.DataDir, own.DevKey = config.RoleAll, p.records, p.key
	own.NodeListen, own.NodeCert, own.NodeKey, own.NodeCA, own.Installation = "", "", "", "", ""
	own.Database, own.NATS, own.Blobs, own.SecretKey, own.Volumes = "", "", "", "", ""
	own.TLSCert, own.TLSKey, own.PreviewURL, own.E2B = "", "", "", "off"
	own.OnExit, own.ShutdownGrace = "destroy", privateGrace
	return p, nil
}

// makeRecords makes a folder in dir, locked as long as this process lives, and
// removes those of processes that were killed.
func (p *private) makeRecords(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	all, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer all.Close() // and with it the lock
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := removeUnlocked(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	p.records = filepath.Join(dir, p.platform.Name)
	if err := os.MkdirAll(filepath.Join(p.records, "state"), 0o700); err != nil {
		return err
	}
	if p.lock, err = os.Open(p.records); err != nil {
		return err
	}
	return unix.Flock(int(p.lock.Fd()), unix.LOCK_EX)
}

// removeUnlocked removes a folder that no living process has locked.
func removeUnlocked(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its process has removed it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		return nil
	} else if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// remove removes the records. The server must be closed.
func (p *private) remove() error {
	return errors.Join(os.RemoveAll(p.records), p.lock.Close())
}

// notHere returns an error for an unknown image name, such as python:3.10, that suggests the image
// the user may mean.
func notHere(cfg *config.Config, images *image.Store, missing error) error {
	aliases := image.Aliases{Store: images, Default: image.Default, Names: cfg.ImageAliases}
	return aliases.NotHere(cfg.Image, missing)
}

// noImage says that there is nothing to make sandboxes from, and what else would
// do.
func noImage(cfg *config.Config, instead string) error {
	build := "atoll image build"
	if requirement.IsVariant(cfg.Image) {
		build = requirement.VariantCommand(cfg.Image)
	}
	return fault.New(fault.NotFound, "the data folder %s has no image %q: pass --data-dir if it is elsewhere, build the image with '%s', or %s", cfg.DataDir, cfg.Image, build, instead)
}
