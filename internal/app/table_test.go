package app

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
)

func testTable(role string) []module.Module {
	return (&Server{process: &process{cfg: Config{Settings: &config.Config{Role: role}}, log: slog.New(slog.DiscardHandler)}}).table()
}

// TestTableOrder checks that modules start in the order in which the table lists them, and that the
// admin key is made after all others have started.
func TestTableOrder(t *testing.T) {
	table := testTable(config.RoleAll)
	g, err := module.New(table)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	needs := map[string][]string{}
	for _, m := range table {
		names = append(names, m.Name)
		needs[m.Name] = m.Needs
	}
	if !slices.Equal(g.Names(), names) {
		t.Errorf("modules start in the order %v, not in that of the table, %v", g.Names(), names)
	}
	before := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if !before[name] {
			before[name] = true
			for _, need := range needs[name] {
				follow(need)
			}
		}
	}
	follow("admin key")
	for _, name := range names {
		if !before[name] {
			t.Errorf("the admin key could be made before %q has started", name)
		}
	}
}

// TestTableNeeds checks that each part has the parts of its role that it points to, that the table lists
// them, and that it points to no others.
func TestTableNeeds(t *testing.T) {
	for _, role := range []string{config.RoleAll, config.RoleGateway, config.RoleExecutor} {
		t.Run(role, func(t *testing.T) {
			table := testTable(role)
			if _, err := module.New(table); err != nil {
				t.Fatal(err)
			}
			names := map[any]string{}
			for _, m := range table {
				names[m.Part] = m.Name
			}
			for _, m := range table {
				checkFields(t, &m, reflect.ValueOf(m.Part).Elem(), names)
			}
		})
	}
}

func checkFields(t *testing.T, m *module.Module, part reflect.Value, names map[any]string) {
	for i := range part.NumField() {
		field, of := part.Field(i), part.Type().Field(i)
		switch {
		case of.Type.Kind() == reflect.Func && field.IsNil():
			t.Errorf("%s: the table does not set %s", m.Name, of.Name)
		case of.Type == reflect.TypeFor[*readiness]():
			checkFields(t, m, field.Elem(), names)
		case of.Type.Implements(reflect.TypeFor[module.Part]()) && of.Type.Elem().PkgPath() == part.Type().PkgPath():
			if field.IsNil() {
				for p, n := range names {
					if reflect.TypeOf(p) == of.Type {
						t.Errorf("%s: the table does not set %s, which is %q", m.Name, of.Name, n)
					}
				}
				continue
			}
			name := ""
			for p, n := range names {
				if reflect.ValueOf(p).Pointer() == field.Pointer() {
					name = n
				}
			}
			if !slices.Contains(m.Needs, name) {
				t.Errorf("%s: uses %q, which its needs do not list", m.Name, name)
			}
		}
	}
}
