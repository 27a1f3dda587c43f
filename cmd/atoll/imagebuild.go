package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) imageBuild() *cobra.Command {
	var s *settings
	var name string
	var with []string
	var replace, ifMissing, ifChanged bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the default image, or a variant of it, from Debian's packages",
		Long: `Build the default image: Python with pip, numpy, pandas, matplotlib and requests,
Node.js with npm, Bash, git, curl, jq, gcc, g++ and make, from Debian testing's
packages. It needs mmdebstrap and takes about three minutes.

--with builds a variant, which has more programs: browser (Chromium) for the skill
web-browsing and for PDF files, office (LibreOffice) for PDF files that look like
their documents. A variant is called default+browser, for example. Servers build
missing variants when something needs them, unless image_variants forbids it.`,
		Example: `  atoll image build
  atoll image build --with browser,office
  atoll image build --replace --image-mirror http://debian.example.org/debian`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			cfg, log, err := a.load(s)
			if err != nil {
				return err
			}
			store, err := openImages(cfg)
			if err != nil {
				return err
			}
			if with, err = image.CheckExtras(with); err != nil {
				return err
			}
			if name == "" {
				name = requirement.Variant(with)
			}
			if ifMissing {
				if img, err := store.Get(name); err == nil {
					return describeImage(a.std.out, img)
				}
			}
			if ifChanged {
				img, err := store.Get(name)
				if err == nil && !cmd.Flags().Changed("with") {
					with = img.With // it keeps what it was built with
				}
				if err == nil && img.Recipe == image.Recipe(with) {
					return describeImage(a.std.out, img)
				}
				replace = true
			}
			return a.buildDefault(ctx, cfg, log, store, image.BuildOptions{Name: name, With: with, Replace: replace})
		}),
	}
	s = addSettings(cmd)
	a.makesSandboxes(cmd, s, nil)
	// This one is worth seeing here.
	cmd.Flags().Lookup("image-mirror").Hidden = false
	cmd.Flags().StringVar(&name, "name", "", "name in Atoll (default, or with --with that of the variant)")
	cmd.Flags().StringSliceVar(&with, "with", nil, "programs to add: "+strings.Join(image.Extras(), ", "))
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an unused image with that name")
	cmd.Flags().BoolVar(&ifMissing, "if-missing", false, "do nothing if the image exists")
	cmd.Flags().BoolVar(&ifChanged, "if-changed", false, "do nothing if the image exists and this version would build the same one; otherwise replace it")
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

// ensureImage makes sure that there is an image to run in: where the default one is
// wanted and missing it imports a prebuilt one or builds it, and turns to this
// machine's own files, saying so, where neither can be done.
func (a *cli) ensureImage(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Image == image.HostName {
		return nil
	}
	store, err := openImages(cfg)
	if err != nil {
		return err
	}
	if err := importPrebuilt(ctx, cfg, store, progress(a.std.err), log); err != nil {
		return err
	}
	_, err = store.Get(cfg.Image)
	if err == nil || cfg.Image != image.Default || fault.KindOf(err) != fault.NotFound {
		return err
	}
	fmt.Fprintln(a.std.err, "building the default image, once; this takes about three minutes")
	err = a.buildDefault(ctx, cfg, log, store, image.BuildOptions{})
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(a.std.err, "the default image cannot be built: %v\nusing the host image instead: this machine's own /usr, read-only\n", err)
	cfg.Image = image.HostName
	return nil
}

// firstImage makes sure that the server has an image before a start changes anything: it imports
// or builds a missing default image, or says what to run.
func (a *cli) firstImage(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Image == image.HostName {
		return nil
	}
	if _, err := os.Stat(imagesDir(cfg)); err == nil {
		store, err := openImages(cfg)
		if err != nil {
			return err
		}
		switch _, err := store.Get(cfg.Image); fault.KindOf(err) {
		case fault.NotFound:
		case fault.Invalid:
			return &exit{exitUsage, notHere(cfg, store, err)}
		default:
			return err
		}
	}
	missing := fmt.Sprintf("the data folder %s has no image %q", cfg.DataDir, cfg.Image)
	if cfg.Image != image.Default {
		if requirement.IsVariant(cfg.Image) {
			return &exit{exitUsage, fmt.Errorf("%s: run '%s --data-dir %s'", missing, requirement.VariantCommand(cfg.Image), cfg.DataDir)}
		}
		return &exit{exitUsage, fmt.Errorf("%s: import it with 'atoll image import SOURCE --name %s --data-dir %s'", missing, cfg.Image, cfg.DataDir)}
	}
	if prebuilt(cfg) == "" {
		if err := image.CanBuild(); err != nil {
			return &exit{exitUsage, fmt.Errorf("%s, and this machine cannot build it yet: %w. Then restart the server, which builds the image. Nothing was changed", missing, err)}
		}
	}
	if err := openDataFolder(cfg.DataDir, log); err != nil {
		return err
	}
	store, err := openImages(cfg)
	if err != nil {
		return err
	}
	if prebuilt(cfg) != "" {
		return importPrebuilt(ctx, cfg, store, progress(a.std.err), log)
	}
	log.Info("building the default image, once; this takes about three minutes")
	if err := a.buildDefault(ctx, cfg, log, store, image.BuildOptions{}); err != nil && fault.KindOf(err) != fault.Conflict {
		return fmt.Errorf("build the default image: %w. No key was created; run 'atoll image build --data-dir %s' to try again, or set image to host", err, cfg.DataDir)
	}
	return nil
}

// prebuiltDir is where packages put prebuilt images, relative to the folder of this
// program.
const prebuiltDir = "../share/atoll/images"

// prebuilt returns where a prebuilt default image is to be had: what image_source
// names, or the file that was installed with this program; "" for nowhere.
func prebuilt(cfg *config.Config) string {
	if cfg.ImageSource != "" {
		return cfg.ImageSource
	}
	return installed(image.Default)
}

// installed returns the archive of an image that was installed with this program; "" if there is
// none.
func installed(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	for _, dir := range []string{".", prebuiltDir} {
		file := filepath.Join(filepath.Dir(self), dir, image.ArchiveName(name))
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// importPrebuilt imports the prebuilt default image if that image is wanted and
// missing, and there is one.
func importPrebuilt(ctx context.Context, cfg *config.Config, store *image.Store, say image.Progress, log *slog.Logger) error {
	source := prebuilt(cfg)
	if cfg.Image != image.Default || source == "" {
		return nil
	}
	if _, err := store.Get(image.Default); fault.KindOf(err) != fault.NotFound {
		return err
	}
	file, _, _ := strings.Cut(source, "#")
	log.Info("importing the prebuilt default image, once", "source", file)
	_, err := store.ImportArchive(ctx, image.ImportOptions{Name: image.Default, Source: source, Progress: say})
	if fault.KindOf(err) == fault.Conflict { // another process was faster
		return nil
	}
	if err != nil {
		return fmt.Errorf("import the default image from %s: %w", file, err)
	}
	return nil
}
