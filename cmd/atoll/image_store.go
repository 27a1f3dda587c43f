package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/node/image"
)

// storeCommand returns a command that uses the images of the data folder, no server
// needed.
func (a *cli) storeCommand(cmd *cobra.Command, run func(store *image.Store, args []string) error) *cobra.Command {
	var s *settings
	cmd.Aliases = append(cmd.Aliases, aliases[cmd.Name()]...)
	cmd.RunE = failing(func(_ context.Context, _ *cobra.Command, args []string) error {
		cfg, _, err := a.load(s)
		if err != nil {
			return err
		}
		store, err := openImages(cfg)
		if err != nil {
			return err
		}
		return run(store, args)
	})
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.imageNames(s), cobra.ShellCompDirectiveNoFileComp
	}
	s = addSettings(cmd)
	return cmd
}

// imageNames are the names of images, for the shell; none where there is no store.
func (a *cli) imageNames(s *settings) []string {
	cfg, _, err := a.load(s)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(imagesDir(cfg)); err != nil {
		return nil // completing makes no folders
	}
	store, err := openImages(cfg)
	if err != nil {
		return nil
	}
	all, err := store.List()
	names, _ := namesOf(all, err, func(i *image.Image) string { return i.Name })
	return names
}

// imageRecord is an image as it is printed.
type imageRecord struct {
	Name         string              `json:"name"`
	Source       string              `json:"source"`
	Digest       string              `json:"digest"`
	Size         int64               `json:"size_bytes"`
	Created      time.Time           `json:"created_at"`
	Interpreters []interpreterRecord `json:"interpreters"`
}

type interpreterRecord struct {
	Language string `json:"language"`
	Version  string `json:"version"` // "" where it could not be run
	Path     string `json:"path"`
}

func recordOf(img *image.Image) imageRecord {
	r := imageRecord{Name: img.Name, Source: img.Source, Digest: img.Digest, Size: img.Size, Created: img.Created.UTC(), Interpreters: []interpreterRecord{}}
	for _, in := range img.Interpreters {
		r.Interpreters = append(r.Interpreters, interpreterRecord{string(in.Language), in.Version, in.Path})
	}
	return r
}

// languages lists the interpreters in a few words.
func (r imageRecord) languages() string {
	var out []string
	for _, in := range r.Interpreters {
		out = append(out, strings.TrimSpace(in.Language+" "+in.Version))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func (a *cli) imageList() *cobra.Command {
	p := printer{out: a.std.out}
	cmd := a.storeCommand(&cobra.Command{Use: "list", Short: "List images", Args: cobra.NoArgs}, func(store *image.Store, _ []string) error {
		all, err := store.List()
		if err != nil {
			return err
		}
		shown := make([]imageRecord, len(all))
		for i, img := range all {
			shown[i] = recordOf(img)
		}
		return listing(&p, []any{"NAME", "SIZE", "CREATED", "INTERPRETERS", "SOURCE"}, func(r imageRecord) []any {
			return []any{r.Name, humanize.IBytes(uint64(r.Size)), r.Created.Format(time.DateOnly), r.languages(), r.Source}
		})(shown)
	})
	cmd.ValidArgsFunction = nil
	p.addFlags(cmd.Flags())
	p.addQuiet(cmd.Flags())
	return cmd
}

func (a *cli) imageShow() *cobra.Command {
	p := printer{out: a.std.out}
	cmd := a.storeCommand(&cobra.Command{Use: "show NAME", Short: "Show an image", Args: cobra.ExactArgs(1)}, func(store *image.Store, args []string) error {
		img, err := store.Get(args[0])
		if err != nil {
			return err
		}
		r := recordOf(img)
		return p.print(r, func(w io.Writer) {
			row(w, "name", r.Name)
			row(w, "size", humanize.IBytes(uint64(r.Size)))
			row(w, "source", r.Source)
			row(w, "digest", r.Digest)
			row(w, "created", when(r.Created))
			row(w, "interpreters", r.languages())
		})
	})
	p.addFlags(cmd.Flags())
	return cmd
}

func (a *cli) imageDelete() *cobra.Command {
	var force bool
	p := printer{out: a.std.out}
	cmd := a.storeCommand(&cobra.Command{Use: "delete NAME…", Aliases: []string{"remove"}, Short: "Delete unused images", Args: cobra.MinimumNArgs(1)}, func(store *image.Store, args []string) error {
		return p.deletes(args, force, store.Remove)
	})
	addForce(cmd, &force)
	p.addFlags(cmd.Flags())
	return cmd
}
