package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// renamed has the present name of each setting that had another one. A setting under
// its old name is refused, because a server that ignored it would run with the default.
var renamed = map[string]string{
	"sandbox_spares":   "standby_kernels",
	"sandbox_memories": "checkpoint_disk",
	"max_sandboxes":    "max_machine_sandboxes", // max_sandboxes is the bound of a plan
}

// Renamed lists the old names of settings, as Settings lists those there are. Only
// Name, Env and Flag are set.
func Renamed() []Setting {
	var out []Setting
	for _, old := range slices.Sorted(maps.Keys(renamed)) {
		out = append(out, named(old))
	}
	return out
}

// RenamedError says what the setting that was called s is called now, in the form of
// the place where the old name stands.
func (s Setting) RenamedError(form func(Setting) string) error {
	return fmt.Errorf("%s was renamed to %s", form(s), form(named(renamed[s.Name])))
}

// named returns a setting with its names only.
func named(name string) Setting {
	return Setting{Name: name, Env: "ATOLL_" + strings.ToUpper(name), Flag: strings.ReplaceAll(name, "_", "-")}
}

// renamedIn lists an error for each old name that an environment has.
func renamedIn(getenv func(string) string) (bad []error) {
	for _, s := range Renamed() {
		if getenv(s.Env) != "" {
			bad = append(bad, s.RenamedError(func(s Setting) string { return s.Env }))
		}
	}
	return bad
}
