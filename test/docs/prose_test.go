package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/prose"
)

// maxLine is the longest line of prose, in characters. Tables have no limit.
const maxLine = 200

// TestProse checks pages for long lines and for dialect.
func TestProse(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	names, err := filepath.Glob(filepath.Join(root, "docs", "reference", "sdk", "*.md")) // test/sdk runs their code
	if err != nil || len(names) < 4 {
		t.Fatalf("found %d pages of the client libraries, %v", len(names), err)
	}
	names = append(names, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SECURITY.md"))
	for _, path := range append(names, paths(t, root)...) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "<!-- Written by ") {
			continue // from descriptions in the code
		}
		fenced := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if n := utf8.RuneCountInString(line); n > maxLine && !strings.HasPrefix(line, "|") && !fenced {
				t.Errorf("%s:%d has %d characters, more than %d", name, i+1, n, maxLine)
			}
			if fenced {
				continue
			}
			for _, hit := range prose.Line(line) {
				t.Errorf("%s:%d: %s in place of %q", name, i+1, hit.Advice, hit.Text)
			}
		}
	}
}
