package language_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/language"
)

const hookFolder = "../../guest/hook"

// once fails where a value is in two entries. Empty ones are passed over.
type once map[string]language.Name

func (o once) add(t *testing.T, what string, l language.Name, values ...string) {
	t.Helper()
	for _, v := range values {
		if had, ok := o[v]; ok && v != "" {
			t.Errorf("%s and %s: both have the %s %q", had, l, what, v)
		}
		o[v] = l
	}
}

func TestTable(t *testing.T) {
	var (
		name      = regexp.MustCompile(`^[a-z][a-z0-9]*$`) // it is part of a regular expression, of ids and of labels
		extension = regexp.MustCompile(`^\.[a-z0-9]+$`)
		file      = regexp.MustCompile(`^[a-z]+\.[a-z]+$`)
		variable  = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
		pattern   = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*\*?$`)
	)
	names, titles, extensions, programs, repositories := once{}, once{}, once{}, once{}, once{}
	if all := language.All(); len(all) == 0 || all[0].Name != language.Default {
		t.Fatal("the default language is not the first one")
	}
	for _, l := range language.All() {
		t.Run(string(l.Name), func(t *testing.T) {
			names.add(t, "name", l.Name, string(l.Name))
			titles.add(t, "title", l.Name, l.Title)
			extensions.add(t, "extension", l.Name, l.Extensions...)
			programs.add(t, "program", l.Name, l.Programs...)
			repositories.add(t, "repository", l.Name, l.Repository)
			check := func(ok bool, message string) {
				t.Helper()
				if !ok {
					t.Error(message)
				}
			}
			bad := func(p *regexp.Regexp) func(string) bool { return func(s string) bool { return !p.MatchString(s) } }
			check(name.MatchString(string(l.Name)), "the name is not a lower-case word")
			check(l.Title != "", "no title")
			check(len(l.Extensions) > 0 && !slices.ContainsFunc(l.Extensions, bad(extension)), "no extensions, or one that is not lower-case with a dot")
			check(file.MatchString(l.File) && slices.Contains(l.Extensions, path.Ext(l.File)), "the program's file has none of the extensions")
			check(len(l.Programs) > 0 && !slices.ContainsFunc(l.Programs, func(p string) bool { return p == "" || strings.Contains(p, "/") }), "no interpreter, or one that is a path")
			check(len(l.Version) > 0, "no arguments that print the version")
			check(l.Major >= 0 && l.Memory >= 1<<20 && l.Memory <= 1<<30, "the memory of a warm sandbox is not known")
			check(!slices.ContainsFunc(strings.Fields(l.AtStart), bad(pattern)), "what is read at the start is not a list of variables")
			for _, hook := range append([]string{l.Warm.Hook, l.Context.Hook}, l.Context.Parts...) {
				if st, err := os.Stat(filepath.Join(hookFolder, hook)); hook != "" && (err != nil || !st.Mode().IsRegular()) {
					t.Errorf("the hook %s is not in internal/guest/hook", hook)
				}
			}
			w := l.Warm
			if w.Hook == "" {
				check(w == language.Warm{}, "how it waits is said, but no hook")
			} else {
				check(w.FD >= 3 && w.FD <= 200, "the hook's descriptor is not one")
				check(variable.MatchString(w.Variable) || w.Variable == "" && w.Prefix == "" && l.Site, "nothing makes the interpreter run the hook")
				check(w.Variable == "" || l.ReadsAtStart(w.Variable), "the hook's variable is not among those that are read at the start")
				check(!slices.ContainsFunc(strings.Fields(w.Looked), func(p string) bool { return path.Clean(p) != p || path.IsAbs(p) || strings.HasPrefix(p, "..") }), "what was looked for is not below the home")
			}
			check(l.Import == nil || w.Hook != "" && l.Site, "modules are imported ahead by a hook in the folder of site packages")
			c := l.Context
			check(c.Hook != "" || c.Flags == nil && c.Parts == nil && !c.Thread && !c.Forks && !c.NoNUL, "how contexts are is said, but no hook")
			if language.Get(l.Name).Title != l.Title || !language.Known(l.Name) {
				t.Error("not found by its name")
			}
			for _, e := range l.Extensions {
				check(language.ByExtension(strings.ToUpper(e)).Name == l.Name, "not found by "+e)
			}
		})
	}
	entries, err := os.ReadDir(hookFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if kind, _, _ := strings.Cut(e.Name(), "."); kind != "blocked" && !slices.ContainsFunc(language.All(), func(l language.Language) bool {
			return e.Name() == l.Warm.Hook || e.Name() == l.Context.Hook || slices.Contains(l.Context.Parts, e.Name())
		}) {
			t.Errorf("internal/guest/hook/%s is the hook of no language", e.Name())
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, l := range []*language.Language{language.Get("cobol"), language.Get(""), language.ByExtension(""), language.ByExtension(".cob"), language.ByRepository("")} {
		if l == nil || l.Name != "" || l.File != "" || l.Warm.Hook != "" || language.Known(l.Name) {
			t.Errorf("%+v", l)
		}
	}
}

func TestJoin(t *testing.T) {
	for want, words := range map[string][]language.Name{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := language.Join(words, ", ", " or "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReadsAtStart(t *testing.T) {
	for _, c := range []struct {
		of   language.Name
		name string
		want bool
	}{
		{language.Python, "PYTHONHASHSEED", true}, {language.Python, "TZ", true}, {language.Python, "OMP_NUM_THREADS", true},
		{language.Python, "LC_ALL", true}, {language.Python, "MALLOC_ARENA_MAX", true}, {language.Python, "LD_PRELOAD", true},
		{language.Python, "NODE_OPTIONS", false}, {language.Python, "API_KEY", false}, {language.Python, "MY_PYTHON", false},
		{language.Node, "NODE_OPTIONS", true}, {language.Node, "UV_THREADPOOL_SIZE", true}, {language.Node, "PYTHONPATH", false},
		{language.Node, "TZ", true}, {language.Node, "NODES", false}, {language.Node, "FORCE_COLOR", true},
		{language.Bash, "BASH_ENV", true}, {language.Bash, "SECONDS", true}, {language.Bash, "IFS", true}, {language.Bash, "SHELLOPTS", true},
		{language.Bash, "API_KEY", false}, {"", "LD_LIBRARY_PATH", true}, {"", "X", false},
	} {
		if got := language.Get(c.of).ReadsAtStart(c.name); got != c.want {
			t.Errorf("%s reads %s: %t", c.of, c.name, got)
		}
	}
}
