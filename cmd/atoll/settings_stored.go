package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/app/config"
)

// storedSettings are the commands that change settings of running servers.
func (a *cli) storedSettings() []*cobra.Command {
	const long = `

Stored settings are in the records, so all servers of an installation share them
and apply a change within 5 seconds. They come before flags, variables and the
file. These can be stored: %s.
The values of sandbox_ca_bundle and webhook_ca are PEM files on this machine. The
records keep their certificates for all servers, so later changes of the files have
no effect.

The command writes to the records directly, so it runs on a server's machine, as
root or as the user of the server, with the server's settings. The policy events
of the tenant operator record every change.`
	help := fmt.Sprintf(long, strings.Join(app.StorableSettings(), ", "))
	make := func(cmd *cobra.Command, run func(ctx context.Context, cfg *config.Config, args []string) error) *cobra.Command {
		var s *settings
		cmd.Long = cmd.Short + "." + help
		cmd.RunE = failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			return run(ctx, cfg, args)
		})
		if cmd.Args == nil {
			cmd.Args = cobra.NoArgs
		}
		cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 || cmd.Name() == "list" {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return app.StorableSettings(), cobra.ShellCompDirectiveNoFileComp
		}
		s = addSettings(cmd)
		cmd.Flags().Lookup("data-dir").Hidden = false
		return cmd
	}
	p := printer{out: a.std.out}
	list := make(&cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the stored settings"}, func(ctx context.Context, cfg *config.Config, _ []string) error {
		stored, err := a.local(cfg).StoredSettings(ctx)
		if err != nil {
			return err
		}
		return p.print(stored, func(w io.Writer) {
			for _, name := range slices.Sorted(maps.Keys(stored)) {
				fmt.Fprintf(w, "%s: %s\n", name, stored[name])
			}
		})
	})
	p.addFlags(list.Flags())
	return []*cobra.Command{
		make(&cobra.Command{
			Use: "set NAME VALUE", Short: "Change a setting of all running servers", Args: cobra.ExactArgs(2),
			Example: `  atoll config set model_allow 127.0.0.1,10.0.0.7
  atoll config set cors_origins https://app.example.com
  atoll config set sandbox_ca_bundle company-ca.pem`,
		}, func(ctx context.Context, cfg *config.Config, args []string) error {
			return a.setSetting(ctx, cfg, args[0], &args[1])
		}),
		make(&cobra.Command{
			Use: "unset NAME", Short: "Remove a stored setting, so that each server uses its own value", Args: cobra.ExactArgs(1),
			Example: `  atoll config unset model_allow`,
		}, func(ctx context.Context, cfg *config.Config, args []string) error {
			return a.setSetting(ctx, cfg, args[0], nil)
		}),
		list,
	}
}

// setSetting changes a stored setting, or removes it if value is nil, and says what the change
// does not reach at once.
func (a *cli) setSetting(ctx context.Context, cfg *config.Config, name string, value *string) error {
	note, err := a.local(cfg).SetSetting(ctx, name, value)
	if err == nil && note != "" {
		fmt.Fprintln(a.std.out, note)
	}
	return err
}
