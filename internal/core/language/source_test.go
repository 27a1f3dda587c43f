package language_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/language"
)

const repository = "../../.."

// spelled are the files that name a language, and why they may.
var spelled = map[string]string{
	"cmd/atoll/ask_input.go":                      "a program to ask about is text, whatever it is written in",
	"cmd/atoll/ask_show.go":                       "code_interpreter runs Python alone",
	"cmd/atoll/bare.go":                           "measures the demo's program, which is Python",
	"cmd/atoll/demo.go":                           "the demo's program is Python",
	"cmd/atoll/imagebuild.go":                     "lists what the default image has, most of which is no language",
	"cmd/atoll/node.go":                           "a server of an installation is a node, too",
	"cmd/atoll/sandbox.go":                        "examples name an image, and a shell",
	"internal/agent/sandboxtool/check.go":         "the check of an outcome is a command of the shell",
	"internal/agent/interpreter/interpreter.go":   "code_interpreter runs Python alone, as OpenAI's does",
	"internal/agent/sandboxtool/program.go":       "the programs for documents and pages are Python",
	"internal/app/config/config.go":               "help texts of settings are tags, which cannot be computed",
	"internal/core/execution/execution.go":        "repeats the table's constants for tests",
	"internal/core/tenant/preset.go":              "people type languages for the package registries of languages",
	"internal/control/sandboxes/display.go":       "E2B has names of its own for some languages",
	"internal/edge/httpapi/docs/docs.go":          "serves a script to browsers",
	"internal/edge/httpapi/execute/operations.go": "the example of a request is Python",
	"internal/agent/toolset/toolset.go":           "a tool of Anthropic's has the name of its shell",
	"internal/core/file/mediatype.go":             "a file to download may be a script for browsers",
	"internal/control/tools/catalog.go":           "the example of a request is Python",
	"internal/guest/daemon/start.go":              "Bash is the shell of commands, too",
	"internal/infra/store/execution/list.go":      "the index of a shipped migration holds rows of two languages",
	"internal/node/image/debian/debian.go":        "packages of the default image",
	"internal/node/provision/programs.go":         "pip installs with Python, npm with Node.js",
	"internal/node/image/host.go":                 "a folder of /etc that a Debian's programs need",
}

// apart are folders of code that uses Atoll as its callers do, and names the languages of
// the programs that it runs.
var apart = []string{"test", "bench", "examples", "internal/redteam"}

// TestOneTable fails where code names a language that should ask the table. A string
// literal names one that is its name, program or file, that holds the name of a hook or
// program's file, or the names or titles of two. Prose may name one.
func TestOneTable(t *testing.T) {
	words := map[string]bool{}
	var files, names []string
	for _, l := range language.All() {
		for _, w := range slices.Concat([]string{string(l.Name), l.Title}, l.Programs, l.Extensions) {
			words[w] = true
		}
		for _, f := range []string{l.File, l.Warm.Hook, l.Context.Hook} {
			if f != "" {
				files = append(files, f)
			}
		}
		names = append(names, `(`+regexp.QuoteMeta(string(l.Name))+`|`+regexp.QuoteMeta(l.Title)+`)\b`)
	}
	mentions := make([]*regexp.Regexp, len(names))
	for i, n := range names {
		mentions[i] = regexp.MustCompile(`(?i)\b` + n)
	}
	constants := []string{"Python", "Node", "Bash"}
	used := map[string]bool{}
	err := filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(repository, name)
		if d.IsDir() {
			if slices.Contains(apart, relative) || relative == "internal/core/language" || strings.HasPrefix(d.Name(), ".") && relative != "." ||
				strings.HasSuffix(d.Name(), "test") || d.Name() == "node_modules" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		refuse := func(at token.Pos, what string) {
			if _, ok := spelled[relative]; ok {
				used[relative] = true
				return
			}
			t.Errorf("%s:%d: %s names a language; see internal/core/language", relative, set.Position(at).Line, what)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains([]string{"language", "execution"}, x.Name) && slices.Contains(constants, n.Sel.Name) {
					refuse(n.Pos(), x.Name+"."+n.Sel.Name)
				}
			case *ast.BasicLit:
				if n.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(n.Value)
				if err != nil {
					t.Fatal(err)
				}
				count := 0
				for _, m := range mentions {
					if m.MatchString(text) {
						count++
					}
				}
				if words[text] || count > 1 || slices.ContainsFunc(files, func(f string) bool { return strings.Contains(text, f) }) {
					refuse(n.Pos(), n.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range spelled {
		if !used[name] || why == "" {
			t.Errorf("%s need not be excepted, or gives no reason", name)
		}
	}
}
