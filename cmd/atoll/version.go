package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *cli) versionCommand() *cobra.Command {
	p := printer{out: a.std.out}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: failing(func(context.Context, *cobra.Command, []string) error {
			return p.print(map[string]string{"version": version()}, func(w io.Writer) { fmt.Fprintln(w, "atoll", version()) })
		}),
	}
	p.addFlags(cmd.Flags())
	return cmd
}

// linked is set when a release is built, with -X main.linked=v1.2.3.
var linked string

// version is the release, else what the build knows of its sources.
func version() string {
	if linked != "" {
		return linked
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	return v + " " + info.GoVersion
}
