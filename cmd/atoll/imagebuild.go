package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) imageBuild() *cobra.Command {
	var s *settings
	var name string
	var replace, ifMissing bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the default image from Debian's packages",
		Long: `Build the default image: Python with pip, numpy, pandas, matplotlib and requests,
Node.js with npm, Bash, git, curl and jq, from Debian testing's packages. It
needs mmdebstrap and takes a minute or two.`,
		Example: `  atoll image build
  atoll image build --replace --image-mirror http://debian.example.org/debian`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			cfg, log, err := a.load(s)
			if err != nil {
				return err
			}
			store, err := openImages(cfg)
			if err != nil {
				return err
			}
			if ifMissing {
				if img, err := store.Get(name); err == nil {
					return describeImage(a.std.out, img)
				}
			}
			return a.buildDefault(ctx, cfg, log, store, image.BuildOptions{Name: name, Replace: replace})
		}),
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, nil)
	// This one is worth seeing here.
	cmd.Flags().Lookup("image-mirror").Hidden = false
	cmd.Flags().StringVar(&name, "name", image.Default, "name in Atoll")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an image of that name which nothing uses")
	cmd.Flags().BoolVar(&ifMissing, "if-missing", false, "do nothing when there is one")
	return cmd
}

// buildDefault builds the image that opts name and says how it went.
func (a *cli) buildDefault(ctx context.Context, cfg *config.Config, log *slog.Logger, store *image.Store, opts image.BuildOptions) error {
	probe, closeProbe, err := openProbe(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer closeProbe() //nolint:errcheck // a sweep comes with the next start
	opts.Mirror, opts.Probe, opts.Progress = cfg.ImageMirror, probe, progress(a.std.err)
	img, err := store.BuildDefault(ctx, opts)
	if err != nil {
		return err
	}
	return describeImage(a.std.err, img)
}

// ensureImage makes sure that there is an image to run in: it builds the
// default one when that is wanted and missing, and turns to this machine's own
// files, saying so, where it cannot be built.
func (a *cli) ensureImage(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Image == image.HostName {
		return nil
	}
	store, err := openImages(cfg)
	if err != nil {
		return err
	}
	_, err = store.Get(cfg.Image)
	if err == nil || cfg.Image != image.Default || fault.KindOf(err) != fault.NotFound {
		return err
	}
	fmt.Fprintln(a.std.err, "building the default image, once; this takes a minute or two")
	err = a.buildDefault(ctx, cfg, log, store, image.BuildOptions{})
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(a.std.err, "the default image cannot be built: %v\nusing the host image instead: this machine's own /usr, read-only\n", err)
	cfg.Image = image.HostName
	return nil
}
