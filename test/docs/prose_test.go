package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/test/atolltest"
)

// maxLine is the longest line of a page, in characters.
const maxLine = 200

var (
	// vague are words that do not name the actor, or a part by a name it no longer has.
	vague = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whom|vouch\w*|twins?|likeness|attendants?)\b`)
	code  = regexp.MustCompile("`[^`]*`")
)

// TestProse checks the length of lines, and words that pages do not use.
func TestProse(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	names, err := filepath.Glob(filepath.Join(root, "docs", "sdk", "*.md")) // whose code test/sdk runs
	if err != nil || len(names) < 4 {
		t.Fatalf("found %d pages of the client libraries, %v", len(names), err)
	}
	for _, p := range pages(t, root) {
		names = append(names, p.name)
	}
	for _, path := range names {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > maxLine {
				t.Errorf("%s:%d has %d characters, more than %d", name, i+1, n, maxLine)
			}
			if word := vague.FindString(code.ReplaceAllString(line, "")); word != "" {
				t.Errorf("%s:%d: name the actor in place of %q", name, i+1, word)
			}
		}
	}
}
