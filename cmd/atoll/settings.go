package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app/config"
)

// settings are the flags of a command that uses the configuration.
type settings struct {
	file  string
	given map[string]string // by flag, only those on the command line
	// starts is set for commands that start a server or fill a data folder: they do not look for
	// the folder of a server that runs.
	starts bool
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
		if setting.Name == "dev" {
			flags.Lookup(setting.Flag).NoOptDefVal = "on" // --dev alone
		}
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

// onlyHere refuses settings of environments on the command line of a command that a server
// runs: there the environment of the key has them.
func (s *settings) onlyHere(flags ...string) error {
	for _, flag := range flags {
		if value, ok := s.given[flag]; ok {
			return fmt.Errorf("--%s is for programs that run without a server; on a server the environment of the key decides: 'atoll env set TENANT NAME --%[1]s %s'", flag, value)
		}
	}
	return nil
}

// load reads the configuration and makes the logger it asks for.
func (a *cli) load(s *settings) (*config.Config, *slog.Logger, error) {
	src := config.Sources{File: s.file, Getenv: a.getenv, Flags: s.given}
	if !s.starts {
		src.DataDir = a.runningDataDir
	}
	cfg, err := config.Load(src)
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

func (a *cli) configCommand() *cobra.Command {
	var s *settings
	p := printer{out: a.std.out}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its value",
		Long: `Print every setting with its value from flags, environment, file and defaults.

The name in the file is the one shown here. The environment variable is ATOLL_ and
the name in capitals, and the flag has dashes: pool_size, ATOLL_POOL_SIZE,
--pool-size. docs/reference/settings.md explains each one.`,
		Args: cobra.NoArgs,
		RunE: failing(func(context.Context, *cobra.Command, []string) error {
			cfg, _, err := a.load(s)
			if err != nil {
				return err
			}
			values := map[string]string{} // of what is set
			for _, setting := range config.Settings() {
				if value := setting.Value(cfg); value != "" {
					values[setting.Name] = value
				}
			}
			return p.print(values, func(w io.Writer) {
				for _, setting := range config.Settings() {
					value := cmp.Or(values[setting.Name], "# "+setting.Shown)
					if note := cfg.Note(setting.Name); note != "" && values[setting.Name] != "" {
						value += " # " + note
					}
					fmt.Fprintf(w, "%s: %s\n", setting.Name, value)
				}
			})
		}),
	}
	s = addSettings(cmd)
	p.addFlags(cmd.Flags())
	cmd.AddCommand(a.storedSettings()...)
	return cmd
}
