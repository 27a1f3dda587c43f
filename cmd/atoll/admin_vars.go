package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// varFlags are what can be set of the variables of an environment or a key.
type varFlags struct {
	app                                  *cli
	vars, secretFiles, secretEnvs, unset []string
	binds                                []string
}

func (a *cli) addVarFlags(cmd *cobra.Command) *varFlags {
	f := &varFlags{app: a}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.vars, "var", nil, "variable to set, NAME=VALUE; may be repeated")
	flags.StringArrayVar(&f.secretFiles, "secret-file", nil, "secret variable to set from a file, NAME=FILE, - for stdin; may be repeated")
	flags.StringArrayVar(&f.secretEnvs, "secret-env", nil, "secret variable to set from this command's environment, NAME or NAME=OTHER; may be repeated")
	flags.StringArrayVar(&f.binds, "bind", nil, "secret that Atoll inserts into requests to these hosts and hides from programs, NAME=HOST[,HOST…]; NAME= removes the binding; may be repeated")
	return f
}

// addUnset adds the flag that takes variables away.
func (f *varFlags) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.unset, "unset", nil, "variable or secret to remove; may be repeated")
}

// hosts are what secrets are to be bound to; nil where the flags say nothing.
func (f *varFlags) hosts() (map[string][]string, error) {
	binds, err := pairs("bind", f.binds)
	if err != nil || len(binds) == 0 {
		return nil, err
	}
	out := make(map[string][]string, len(binds))
	for name, list := range binds {
		out[name] = []string{}
		if list == "" {
			continue
		}
		for host := range strings.SplitSeq(list, ",") {
			out[name] = append(out[name], strings.TrimSpace(host))
		}
	}
	return out, nil
}

// change is what the flags on the command line say; nil where they say nothing.
func (f *varFlags) change() (env, secrets map[string]string, unset *[]string, err error) {
	vars, err := pairs("var", f.vars)
	if err != nil {
		return nil, nil, nil, err
	}
	hidden, err := f.secrets()
	if err != nil {
		return nil, nil, nil, err
	}
	if len(f.unset) > 0 {
		unset = &f.unset
	}
	return orNone(vars), orNone(hidden), unset, nil
}

// orNone returns nil for an empty map, which changes nothing.
func orNone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// showVars shows variables, of the secret ones the names.
func showVars(w io.Writer, env map[string]string, secrets []string, hosts map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		row(w, "variable", name+"="+strconv.Quote(env[name]))
	}
	for _, name := range secrets {
		if bound := hosts[name]; len(bound) > 0 {
			row(w, "secret", name+" for "+strings.Join(bound, ", "))
		} else {
			row(w, "secret", name)
		}
	}
}

// secrets reads values from where no process list shows them.
func (f *varFlags) secrets() (map[string]string, error) {
	out, err := pairs("secret-file", f.secretFiles)
	if err != nil {
		return nil, err
	}
	for name, file := range out {
		if out[name], err = f.app.readSmall(file); err != nil {
			return nil, fmt.Errorf("--secret-file %s: %w", name, err)
		}
	}
	for _, arg := range f.secretEnvs {
		name, from, other := strings.Cut(arg, "=")
		if !other {
			from = name
		}
		if out[name] = f.app.getenv(from); out[name] == "" {
			return nil, wrong("--secret-env %s: %s is not set", arg, from)
		}
	}
	return out, nil
}
