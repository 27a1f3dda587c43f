package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/language"
)

// cli is what the commands share.
type cli struct {
	getenv func(string) string
	std    stdio
}

func newRoot(getenv func(string) string, std stdio) *cobra.Command {
	a := &cli{getenv: getenv, std: std}
	root := &cobra.Command{
		Use:   "atoll",
		Short: "Run code in sandboxes that each have their own kernel",
		Long: `Atoll runs ` + language.Titles("and") + ` in sandboxes that each have their own
kernel: over HTTP with 'atoll serve', or directly with 'atoll run'.

You can set each setting with a flag, a line in the configuration file, or an
environment variable; 'atoll config' lists them. Logs go to stderr.

Tab completes commands and the names of sandboxes, tenants and other objects after
'source <(atoll completion bash)'; 'atoll completion' also writes zsh and fish.`,
		Example: `  atoll serve                    start the server on 127.0.0.1:8080
  atoll run hello.py             run a program, no server needed
  atoll ask "What is …?"         ask a model that can run code
  atoll sandbox create dev       create a named sandbox
  atoll sandbox exec -it dev -- bash
  atoll doctor                   check this machine's prerequisites`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetVersionTemplate("atoll {{.Version}}\n")
	root.AddCommand(a.serveCommand(), a.runCommand(), a.askCommand(), a.chatCommand(), a.mcpCommand(), a.imageCommand(), a.doctorCommand(), a.configCommand(), a.demoCommand(), a.backupCommand(), a.restoreCommand(), a.redteamCommand(), a.nodeCommand(), a.versionCommand())
	root.AddCommand(a.adminCommands()...)
	root.AddCommand(a.sandboxShortcuts()...)
	a.completeFlags(root)
	return root
}

// group makes cmd one whose subcommands do things. Without one it prints its
// help; a word that names none is wrong.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q for %q; did you mean '%s %s'?", args[0], cmd.CommandPath(), cmd.CommandPath(), near[0])
		}
		return fmt.Errorf("unknown command %q for %q; '%s --help' lists the commands", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return cmd
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
