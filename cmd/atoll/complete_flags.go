package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// completeFlags completes the values of flags that mean the same in every command: hosts of
// --allow and --deny, and images.
func (a *cli) completeFlags(cmd *cobra.Command) {
	for flag, values := range map[string]func() []string{"allow": presetNames, "deny": presetNames, "image": func() []string { return a.imageNames(&settings{given: map[string]string{}}) }} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		// It fails only for a flag that is missing or completed already.
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before, last := "", typed // these flags take lists
			if i := strings.LastIndexByte(typed, ','); i >= 0 && flag != "image" {
				before, last = typed[:i+1], typed[i+1:]
			}
			var found []string
			for _, v := range values() {
				if strings.HasPrefix(v, last) {
					found = append(found, before+v)
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		})
	}
	for _, sub := range cmd.Commands() {
		a.completeFlags(sub)
	}
}

func presetNames() []string {
	names := make([]string, 0, len(tenant.Presets))
	for _, p := range tenant.Presets {
		names = append(names, p.Name)
	}
	return names
}
