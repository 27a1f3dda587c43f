package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app/config"
)

// app is what the commands share.
type cli struct {
	getenv func(string) string
	std    stdio
}

func newRoot(getenv func(string) string, std stdio) *cobra.Command {
	a := &cli{getenv: getenv, std: std}
	root := &cobra.Command{
		Use:   "atoll",
		Short: "Run code in sandboxes that have a kernel of their own",
		Long: `Atoll runs Python, Node.js and Bash in sandboxes that have a kernel of their
own: over HTTP with 'atoll serve', or at once with 'atoll run'.

Every setting is a flag, a line in the configuration file and a variable in
the environment; 'atoll config' lists them. Logs go to stderr.`,
		Example: `  atoll serve                    start the server on 127.0.0.1:8080
  atoll run hello.py             run a program, no server needed
  atoll doctor                   see what this machine lacks`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.serveCommand(), a.runCommand(), a.mcpCommand(), a.imageCommand(), a.doctorCommand(), a.configCommand(), a.demoCommand(), a.backupCommand(), a.restoreCommand(), a.versionCommand())
	root.AddCommand(a.adminCommands()...)
	return root
}

// group makes cmd one whose subcommands do things. Without one it prints its
// help; a word that names none is wrong.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return fmt.Errorf("unknown command %q for %q; see '%s --help'", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return cmd
}

// settings are the flags of a command that uses the configuration.
type settings struct {
	file  string
	given map[string]string // by flag, only those on the command line
}

// addSettings gives cmd a flag for every setting. Those of the groups named are
// in its help; the others work all the same.
func addSettings(cmd *cobra.Command, groups ...string) *settings {
	s := &settings{given: map[string]string{}}
	if len(groups) == 0 {
		if cmd.Long == "" {
			cmd.Long = cmd.Short + "."
		}
		cmd.Long += "\n\nEvery setting that 'atoll config' lists is a flag here too, such as --data-dir."
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.file, "config", "", "configuration file, YAML ("+config.FileEnv+")")
	for _, setting := range config.Settings() {
		value := "value"
		if setting.Enum != nil {
			value = strings.Join(setting.Enum, "|")
		}
		usage := fmt.Sprintf("%s (%s)", setting.Help, setting.Shown)
		flags.Var(&given{s.given, setting.Flag, value}, setting.Flag, usage)
		if !slices.Contains(groups, setting.Group) {
			// It exists: it was added on the line above.
			_ = flags.MarkHidden(setting.Flag)
		}
	}
	return s
}

// given is a flag that is kept as it was written; config parses it.
type given struct {
	all  map[string]string
	name string
	kind string
}

var _ pflag.Value = (*given)(nil)

func (g *given) String() string     { return "" }
func (g *given) Type() string       { return g.kind }
func (g *given) Set(v string) error { g.all[g.name] = v; return nil }

// load reads the configuration and makes the logger it asks for.
func (a *cli) load(s *settings) (*config.Config, *slog.Logger, error) {
	cfg, err := config.Load(config.Sources{File: s.file, Getenv: a.getenv, Flags: s.given})
	if err != nil {
		return nil, nil, &exit{exitUsage, err}
	}
	return cfg, a.logger(cfg), nil
}

func (a *cli) logger(cfg *config.Config) *slog.Logger {
	var level slog.Level
	// The configuration has checked the name.
	_ = level.UnmarshalText([]byte(cfg.LogLevel))
	opts := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.std.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.std.err, opts))
}

// failing gives errors that have no exit code yet that of a failure, so that
// only cobra's own are left to mean a wrong command line.
func failing(f func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd.Context(), cmd, args)
		if err == nil {
			return nil
		}
		if _, ok := err.(*exit); ok { //nolint:errorlint // only an exit that was not wrapped says it all
			return err
		}
		return &exit{exitFailure, err}
	}
}

func (a *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: failing(func(context.Context, *cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.std.out, "atoll", version())
			return err
		}),
	}
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

func (a *cli) configCommand() *cobra.Command {
	var s *settings
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting and the value it has",
		Long: `Print every setting with its value from flags, environment, file and defaults.

In the file a setting has the name shown here; in the environment it is in
capitals after ATOLL_; as a flag it has dashes: pool_size, ATOLL_POOL_SIZE,
--pool-size. docs/configuration.md says what each one does.`,
		Args: cobra.NoArgs,
		RunE: failing(func(context.Context, *cobra.Command, []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			for _, setting := range config.Settings() {
				value := setting.Value(cfg)
				if value == "" {
					value = "# " + setting.Shown
				} else if note := cfg.Note(setting.Name); note != "" {
					value += " # " + note
				}
				if _, err := fmt.Fprintf(a.std.out, "%s: %s\n", setting.Name, value); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	s = addSettings(cmd)
	return cmd
}
