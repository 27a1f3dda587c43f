package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) imageCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "image",
		Short: "Import, build, list and delete images",
		Long: `An image is the root filesystem of sandboxes: one read-only EROFS file. The
setting image names the default image of executions.

Exit codes: 0 done, 1 not done, 2 a wrong command line.`,
	})
	cmd.AddCommand(a.imageImport(), a.imageExport(), a.imageBuild(), a.imageList(), a.imageShow(), a.imageDelete())
	return cmd
}

func imagesDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "images") }

// openImages opens the store of the data folder.
func openImages(cfg *config.Config) (*image.Store, error) { return image.Open(imagesDir(cfg)) }

func (a *cli) imageImport() *cobra.Command {
	var s *settings
	opts := image.ImportOptions{}
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Import an OCI image",
		Long: `Import an OCI image from a registry (a reference such as python:3.14-slim), from
an OCI layout (a folder, or a tarball of one) or from a tarball that 'docker
save' wrote. The command finds the interpreters in it and reports their versions.

SOURCE may also be an archive that 'atoll image export' wrote, or its https URL.
That takes seconds and runs no programs. Append #sha256=… to verify its checksum.`,
		Example: `  atoll image import python:3.14-slim
  atoll image import --name tools ./tools.tar
  atoll image import --preload numpy,pandas --replace ./layout
  atoll image import ./atoll-image-default-amd64.tar.zst`,
		Args: cobra.ExactArgs(1),
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			cfg, log, err := a.load(s)
			if err != nil {
				return err
			}
			store, err := openImages(cfg)
			if err != nil {
				return err
			}
			opts.Source = args[0]
			if file, _, _ := strings.Cut(opts.Source, "#"); image.IsURL(opts.Source) || image.IsArchive(file) {
				opts.Progress = progress(a.std.err)
				img, err := store.ImportArchive(ctx, opts)
				if err != nil {
					return err
				}
				return describeImage(a.std.out, img)
			}
			if opts.Name == "" {
				opts.Name = imageName(opts.Source)
			}
			probe, closeProbe, err := openProbe(ctx, cfg, log)
			if err != nil {
				return err
			}
			defer closeProbe() //nolint:errcheck // a sweep comes with the next start
			opts.Probe, opts.Progress = probe, progress(a.std.err)
			img, err := store.Import(ctx, opts)
			if err != nil {
				return err
			}
			return describeImage(a.std.out, img)
		}),
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, nil)
	cmd.Flags().StringVar(&opts.Name, "name", "", "name in Atoll (derived from SOURCE, or recorded in the archive)")
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace an unused image with that name")
	cmd.Flags().BoolVar(&opts.PlainHTTP, "plain-http", false, "allow a registry without TLS")
	cmd.Flags().StringSliceVar(&opts.Preloads, "preload", nil, "Python modules to import ahead in warm sandboxes")
	return cmd
}

var unfit = regexp.MustCompile(`[^a-z0-9._-]+`)

// imageName makes a name of a source: python:3.14-slim becomes
// python-3.14-slim, ./tools.tar.gz becomes tools.
func imageName(source string) string {
	name, _, _ := strings.Cut(source, "@")
	name = strings.ToLower(filepath.Base(filepath.Clean(name)))
	for _, ext := range []string{".gz", ".tgz", ".zst", ".tar", ":latest"} {
		name = strings.TrimSuffix(name, ext)
	}
	name = strings.Trim(unfit.ReplaceAllString(name, "-"), "-._")
	return name[:min(len(name), 63)]
}

func (a *cli) imageExport() *cobra.Command {
	var s *settings
	cmd := &cobra.Command{
		Use:   "export NAME FILE",
		Short: "Write an image to a file for other machines",
		Long: `Write an image to a file, compressed with zstd, and print the file's checksum.
On another machine of the same architecture, 'atoll image import' imports it, or
a server does at its first start: see image_source.`,
		Example: `  atoll image export default atoll-image-default-amd64.tar.zst`,
		Args:    cobra.ExactArgs(2),
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			store, err := openImages(cfg)
			if err != nil {
				return err
			}
			sum, err := exportImage(ctx, store, args[0], args[1], progress(a.std.err))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.std.out, "%s  %s\n", sum, args[1])
			return err
		}),
	}
	s = addSettings(cmd)
	return cmd
}

// exportImage writes an image to a file, which appears whole or not at all, and
// returns its checksum in hexadecimal digits.
func exportImage(ctx context.Context, store *image.Store, name, file string, say image.Progress) (sum string, err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".atoll-image-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	h := sha256.New()
	err = store.Export(ctx, name, io.MultiWriter(f, h), say)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), os.Rename(f.Name(), file)
}

func describeImage(w io.Writer, img *image.Image) error {
	_, err := fmt.Fprintf(w, "%s: %s, %s\n", img.Name, humanize.IBytes(uint64(img.Size)), recordOf(img).languages())
	return err
}

// progress prints each step of a long job, and every tenth of one whose length
// is known.
func progress(w io.Writer) image.Progress {
	step, tenth := "", int64(-1)
	return func(r image.Report) {
		if r.Step != step {
			step, tenth = r.Step, -1
			fmt.Fprintln(w, " ", r.Step)
		}
		if r.Total <= 0 {
			return
		}
		if t := 10 * r.Done / r.Total; t > tenth {
			if tenth = t; t > 0 {
				fmt.Fprintf(w, "  %3d%% of %s\n", 10*t, humanize.IBytes(uint64(r.Total)))
			}
		}
	}
}
