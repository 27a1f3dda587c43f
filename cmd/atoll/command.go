package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// adminCommands are the commands that talk to a server's API.
func (a *cli) adminCommands() []*cobra.Command {
	return []*cobra.Command{
		a.tenantCommand(), a.envCommand(), a.keyCommand(), a.planCommand(), a.templateCommand(), a.connectionCommand(), a.modelCommand(), a.agentCommand(), a.skillCommand(), a.vaultCommand(), a.sessionCommand(), a.approvalsCommand(),
		a.capsCommand(), a.auditCommand(), a.activityCommand(), a.usageCommand(), a.webhookCommand(), a.executionCommand(), a.threadCommand(), a.sandboxCommand(), a.snapshotCommand(),
	}
}

// remote is a command that talks to a server, with what its subcommands share.
type remote struct {
	target
	printer
	words map[string]completer // how the shell completes arguments, by their word in usage lines
}

// remoteGroup returns a command whose subcommands talk to a server; local is the
// file in data_dir that has the key for them, and words complete their arguments.
func (a *cli) remoteGroup(use, short, long, example, local string, words map[string]completer) (*cobra.Command, *remote) {
	r := &remote{target: target{app: a, local: local}, printer: printer{out: a.std.out}, words: words}
	cmd := group(&cobra.Command{Use: use, Short: short, Example: example})
	cmd.Long = long + r.help() + "\n\nExit codes: 0 done, 1 not done, 2 a wrong command line."
	r.target.addFlags(cmd.PersistentFlags())
	r.printer.addFlags(cmd.PersistentFlags())
	return cmd, r
}

// client returns a client of the server that flags and environment name.
func (r *remote) client() (*sdk.Client, error) {
	e, err := r.find()
	if err != nil {
		return nil, err
	}
	return sdk.New(e.url, e.key), nil
}

// aliases are the other names of verbs, the same for every noun.
var aliases = map[string][]string{
	"list":      {"ls"},
	"show":      {"inspect"},
	"delete":    {"rm"},
	"processes": {"top"},
	"sleep":     {"stop"},
	"wake":      {"start"},
}

// command returns a subcommand that calls the server.
func (r *remote) command(use, short, example string, args cobra.PositionalArgs, run doing) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, ValidArgsFunction: r.complete,
		Args: func(cmd *cobra.Command, given []string) error {
			if args(cmd, given) != nil {
				return fmt.Errorf("want %s", cmd.UseLine())
			}
			return nil
		},
		RunE: failing(func(ctx context.Context, _ *cobra.Command, args []string) error {
			c, err := r.client()
			if err != nil {
				return err
			}
			return r.explain(run(ctx, c, args))
		}),
	}
	cmd.Aliases = aliases[cmd.Name()]
	if cmd.Name() == "list" {
		r.addQuiet(cmd.Flags())
	}
	return cmd
}

// doing is what a subcommand does.
type doing = func(ctx context.Context, c *sdk.Client, args []string) error

// one and two make a call that needs one argument, or two, a call that takes
// them from the command line.
func one[T any](call func(*sdk.Client, context.Context, string) (T, error)) func(context.Context, *sdk.Client, []string) (T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) (T, error) { return call(c, ctx, args[0]) }
}

func two[T any](call func(*sdk.Client, context.Context, string, string) (T, error)) func(context.Context, *sdk.Client, []string) (T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) (T, error) {
		return call(c, ctx, args[0], args[1])
	}
}

// allOf and allOfTwo make a call that lists all there is, likewise.
func allOf[T any](list func(*sdk.Client, string) *sdk.Pager[T]) func(context.Context, *sdk.Client, []string) ([]T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) ([]T, error) {
		return list(c, args[0]).All(ctx, 0)
	}
}

func allOfTwo[T any](list func(*sdk.Client, string, string) *sdk.Pager[T]) func(context.Context, *sdk.Client, []string) ([]T, error) {
	return func(ctx context.Context, c *sdk.Client, args []string) ([]T, error) {
		return list(c, args[0], args[1]).All(ctx, 0)
	}
}

// shows calls, and shows what it got.
func shows[T any](call func(context.Context, *sdk.Client, []string) (T, error), show func(T) error) doing {
	return func(ctx context.Context, c *sdk.Client, args []string) error {
		got, err := call(ctx, c, args)
		if err != nil {
			return err
		}
		return show(got)
	}
}

// deletion returns the command that deletes things of one kind. lead are the
// arguments before their names, such as TENANT.
func (r *remote) deletion(lead, noun, short, example string, del func(ctx context.Context, c *sdk.Client, lead []string, name string) error) *cobra.Command {
	var force bool
	before := len(strings.Fields(lead))
	use := strings.TrimLeft(lead+" "+noun+"…", " ")
	cmd := r.command("delete "+use, short, example, cobra.MinimumNArgs(before+1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			return r.deletes(args[before:], force, func(name string) error { return del(ctx, c, args[:before], name) })
		})
	addForce(cmd, &force)
	return cmd
}

func addForce(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVarP(force, "force", "f", false, "ignore names that do not exist")
}

// ifGiven is value if the flag is on the command line, otherwise nil: what is not
// given stays.
func ifGiven[T any](cmd *cobra.Command, flag string, value *T) *T {
	if cmd.Flags().Changed(flag) {
		return value
	}
	return nil
}

// wrong is what is wrong with a command line.
func wrong(format string, args ...any) error { return &exit{exitUsage, fmt.Errorf(format, args...)} }

// pairs parses NAME=VALUE arguments.
func pairs(flag string, args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, wrong("--%s %s: want NAME=VALUE", flag, arg)
		}
		out[name] = value
	}
	return out, nil
}

// moment reads a time: a date, RFC 3339, or how long ago it was, such as 24h.
func moment(flag, text string) (string, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d).UTC().Format(time.RFC3339), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.Format(time.RFC3339), nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return "", wrong("--%s %s: want a date, a time such as 2026-01-31T12:00:00Z, or an age such as 24h", flag, text)
	}
	return text, nil
}

var errNothing = wrong("nothing to change: pass at least one flag")
