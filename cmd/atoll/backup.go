package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/backup"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) backupCommand() *cobra.Command {
	var s *settings
	var withImages bool
	cmd := &cobra.Command{
		Use:   "backup FOLDER|FILE.tar.zst",
		Short: "Copy the database, outputs and keys of the data folder",
		Long: `Copy the permanent data of the data folder: a snapshot of the SQLite database,
stored outputs, and the keys. The server may be running. With PostgreSQL, dump
the database first, then run this command for the other data. The command does
not copy outputs in a bucket.

A backup contains the key that encrypts secrets: anyone who can read it can
decrypt them.

Exit codes: 0 done, 1 not done, 2 a wrong command line.`,
		Example: `  atoll backup /backups/atoll-2026-11-21.tar.zst
  atoll backup --with-images /backups/today`,
		Args: cobra.ExactArgs(1),
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			c := backup.Config{DataDir: cfg.DataDir, Version: version(), Blobs: cfg.Blobs == "", WithImages: withImages}
			if cfg.OwnRecords() {
				c.CopyDatabase = store.CopySQLite
			}
			if c.Images, err = imagesForBackup(cfg); err != nil {
				return err
			}
			m, err := backup.Write(ctx, c, args[0])
			if err != nil {
				return err
			}
			return describeBackup(a.std.out, "backed up", m)
		}),
	}
	s = addSettings(cmd)
	cmd.Flags().BoolVar(&withImages, "with-images", false, "also copy the files of images")
	return cmd
}

func imagesForBackup(cfg *config.Config) ([]backup.Image, error) {
	if _, err := os.Stat(imagesDir(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	images, err := openImages(cfg)
	if err != nil {
		return nil, err
	}
	all, err := images.List()
	if err != nil {
		return nil, err
	}
	var out []backup.Image
	for _, i := range all {
		out = append(out, backup.Image{Name: i.Name, Source: i.Source, Digest: i.Digest})
	}
	return out, nil
}

func (a *cli) restoreCommand() *cobra.Command {
	var s *settings
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FOLDER|FILE.tar.zst",
		Short: "Restore a backup into an empty data folder",
		Long: `Restore a backup into the data folder, which must be empty or missing. The
command verifies every file first. With --check it only verifies.

Exit codes: 0 done, 1 not done, 2 a wrong command line.`,
		Example: `  atoll restore --data-dir /var/lib/atoll /backups/atoll-2026-11-21.tar.zst
  atoll restore --check /backups/today`,
		Args: cobra.ExactArgs(1),
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if check {
				m, err := backup.Check(ctx, args[0])
				if err != nil {
					return err
				}
				return describeBackup(a.std.out, "whole", m)
			}
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			m, err := backup.Restore(ctx, args[0], cfg.DataDir)
			if err != nil {
				return err
			}
			return describeBackup(a.std.out, "restored", m)
		}),
	}
	s = addSettings(cmd)
	s.starts = true
	cmd.Flags().BoolVar(&check, "check", false, "verify the backup against its manifest without restoring it")
	return cmd
}

// describeBackup says what a backup holds, and what it takes beside it.
func describeBackup(w io.Writer, done string, m *backup.Manifest) error {
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d files, %s, made on %s by Atoll %s\n", done, len(m.Files), humanize.IBytes(uint64(size)), m.CreatedAt.Local().Format("2006-01-02 15:04:05"), m.Version)
	b.WriteString("not in it: named sandboxes that are on a machine (running, paused or asleep there); make snapshots of those to be kept\n")
	if !m.Database {
		b.WriteString("not in it: the records, which are in PostgreSQL (pg_dump, pg_restore); take its dump before the backup, so that every record finds its output\n")
	}
	if !m.Blobs {
		b.WriteString("not in it: outputs, which are in a bucket\n")
	}
	if !m.SecretKey {
		b.WriteString("not in it: the key that encrypts secrets, which a setting gives (secret_key); without it they are lost\n")
	}
	if !m.WithImage && len(m.Images) > 0 {
		b.WriteString("not in it: the files of images; import or build them again:\n")
		for _, i := range m.Images {
			if image.Extended(i.Name) {
				continue // a server makes those of environments by itself
			}
			fmt.Fprintf(&b, "  %s from %s (%s)\n", i.Name, i.Source, i.Digest)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
