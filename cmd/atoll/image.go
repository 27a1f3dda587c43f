package main

import (
	"context"
	"fmt"
	"io"
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
		Long: `An image is the root filesystem that sandboxes start from: one read-only EROFS
file, made once. The setting image names the one that executions run in.

Exit codes: 0 done, 1 not done, 2 a wrong command line.`,
	})
	cmd.AddCommand(a.imageImport(), a.imageBuild(), a.imageList(), a.imageShow(), a.imageDelete())
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
save' wrote. The interpreters in it are found and their versions reported.`,
		Example: `  atoll image import python:3.14-slim
  atoll image import --name tools ./tools.tar
  atoll image import --preload numpy,pandas --replace ./layout`,
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
	cmd.Flags().StringVar(&opts.Name, "name", "", "name in Atoll (made from SOURCE)")
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace an image of that name which nothing uses")
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
