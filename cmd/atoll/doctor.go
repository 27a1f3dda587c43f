package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/doctor"
	"github.com/atoll-run/atoll/internal/node/image"
)

func (a *cli) doctorCommand() *cobra.Command {
	var s *settings
	p := printer{out: a.std.out}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's prerequisites",
		Long: `Check kernel, user namespaces, cgroups, devices, disk, runtime, guest, image and
the connections to database and nats, and explain how to fix each problem. With
the role gateway, check only disk and connections. Sandboxes still start with
warnings, but not with failures.

Exit codes: 0 no check failed, 1 one did, 2 a wrong command line.`,
		Args: cobra.NoArgs,
		RunE: failing(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			findings := doctor.Examine(ctx, machine(cfg))
			if err := p.print(findings, func(w io.Writer) {
				for _, f := range findings {
					row(w, f.Level, f.Check, f.Detail)
					if f.Fix != "" {
						fmt.Fprintf(w, "\t\t→ %s\n", f.Fix)
					}
				}
			}); err != nil {
				return err
			}
			if !doctor.Healthy(findings) {
				return &exit{code: exitFailure}
			}
			return nil
		}),
	}
	s = addSettings(cmd)
	p.addFlags(cmd.Flags())
	return cmd
}

func machine(cfg *config.Config) doctor.Target {
	var servers []doctor.Server
	if cfg.Database != "" {
		servers = append(servers, doctor.Server{Setting: "database", URLs: cfg.Database})
	}
	if cfg.NATS != "" {
		servers = append(servers, doctor.Server{Setting: "nats", URLs: cfg.NATS})
	}
	return doctor.Target{
		DataDir: cfg.DataDir,
		Gateway: !cfg.Executor(),
		Servers: servers,
		Runtime: cfg.Runtime,
		Runsc:   runscPath(cfg),
		OCI:     cfg.OCIRuntime,
		Guest:   guestPath(cfg),
		Image: func() (string, error) {
			if cfg.Image == image.HostName {
				return "this machine's own files", nil
			}
			if source := prebuilt(cfg); cfg.Image == image.Default && source != "" {
				if _, err := os.Stat(filepath.Join(imagesDir(cfg), image.Default)); err != nil {
					return "none yet; the first start imports " + source, nil
				}
			}
			if _, err := os.Stat(imagesDir(cfg)); err != nil {
				return "", fmt.Errorf("no images in %s", cfg.DataDir) // a check makes no folders
			}
			store, err := openImages(cfg)
			if err != nil {
				return "", err
			}
			img, err := store.Get(cfg.Image)
			if err != nil {
				return "", err
			}
			return img.Name + " with " + recordOf(img).languages(), nil
		},
	}
}
