package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/node/rootless"
)

// makesSandboxes has cmd run in a user namespace where that is needed for its
// sandboxes: before it reads or writes anything, this program starts itself
// anew in there. elsewhere may say that others make its sandboxes; nil means
// never.
func (a *cli) makesSandboxes(cmd *cobra.Command, s *settings, elsewhere func() bool) {
	cmd.PreRunE = func(*cobra.Command, []string) error {
		// Only the process's own streams reach into another one.
		if a.std != (stdio{os.Stdin, os.Stdout, os.Stderr}) || elsewhere != nil && elsewhere() {
			return nil
		}
		cfg, log, err := a.load(s)
		if err != nil {
			return err
		}
		if !cfg.Executor() {
			return nil
		}
		needed, err := rootless.Needed(cfg.Rootless)
		if err != nil {
			return &exit{exitUsage, err}
		}
		if !needed {
			return nil
		}
		// The process inside acts on signals, this one only passes them on.
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		code, err := rootless.Enter(cfg.DataDir, cfg.StateDir, log)
		if err != nil {
			return &exit{exitNotRun, err}
		}
		return &exit{code: code}
	}
}
