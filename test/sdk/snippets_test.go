package sdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippet is a block of Go of the page, and what the page says that it prints.
type snippet struct{ code, prints string }

// blocks are code of Go and text, one after the other.
var blocks = regexp.MustCompile("(?ms)^```(go|text)\n(.*?)^```$")

// packages are what snippets may use, by the name before the dot.
var packages = map[string]string{
	"atoll": "github.com/atoll-run/atoll/sdk/go", "context": "context", "errors": "errors", "fmt": "fmt", "io": "io",
	"http": "net/http", "os": "os", "strings": "strings", "time": "time",
}

// TestGoPage runs the snippets of docs/reference/sdk/go.md as one program.
func TestGoPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/sdk/go.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []snippet
	for _, m := range blocks.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "go" {
			all = append(all, snippet{code: m[2]})
		} else if len(all) > 0 {
			all[len(all)-1].prints = m[2]
		}
	}
	if len(all) < 5 {
		t.Fatalf("found %d snippets", len(all))
	}
	p := arranged(t)
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program(all)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scenarioTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", file) // in this module, which has the library
	cmd.Env = append(os.Environ(), "ATOLL_BASE_URL="+p.url, "ATOLL_API_KEY="+p.keys["default"], "ATOLL_MODEL="+p.model)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parts := strings.Split(string(out), mark)
	for i, s := range all {
		if i+1 >= len(parts) {
			t.Fatalf("snippet %d was not reached", i)
		}
		if parts[i+1] != s.prints {
			t.Errorf("snippet %d prints\n%s\nand the page has\n%s\nfor\n%s", i, parts[i+1], s.prints, s.code)
		}
	}
}

// mark is printed before each snippet.
const mark = "--- snippet ---\n"

// program is a program of all snippets, each in a function of its own with a client c.
func program(all []snippet) string {
	var body, main strings.Builder
	for i, s := range all {
		fmt.Fprintf(&body, "func snippet%d(ctx context.Context, c *atoll.Client) error {\n_ = c\n{\n%s}\nreturn nil\n}\n", i, s.code)
		fmt.Fprintf(&main, "fmt.Print(%q)\nif err := snippet%d(context.Background(), c); err != nil {\nfmt.Println(err)\nos.Exit(1)\n}\n", mark, i)
	}
	text := body.String() + "func main() {\nc := atoll.New(os.Getenv(\"ATOLL_BASE_URL\"), os.Getenv(\"ATOLL_API_KEY\"))\n" + main.String() + "}\n"
	var imports []string
	for name, path := range packages {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(text) {
			imports = append(imports, fmt.Sprintf("%s %q", name, path))
		}
	}
	slices.Sort(imports)
	return "package main\n\nimport (\n" + strings.Join(imports, "\n") + "\n)\n\n" + text
}
