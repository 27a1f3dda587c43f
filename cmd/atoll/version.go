package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/release"
)

func (a *cli) versionCommand() *cobra.Command {
	p := printer{out: a.std.out}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: failing(func(context.Context, *cobra.Command, []string) error {
			return p.print(map[string]string{"version": release.Version, "build": build()}, func(w io.Writer) { fmt.Fprintln(w, "atoll", version()) })
		}),
	}
	p.addFlags(cmd.Flags())
	return cmd
}

// linked is the revision that 'make build' sets, with -X main.linked=….
var linked string

// version is the release with its build: those of two builds of one release differ.
func version() string { return release.Version + " (" + build() + ")" }

// build names the sources of this program as far as it knows them.
func build() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return "devel"
}
