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

// maxLine is the longest line of prose, in characters. Tables have no limit.
const maxLine = 200

// dialect lists phrases and openings of sentences that a page must not use, each with advice.
var dialect = []struct {
	pattern *regexp.Regexp
	advice  string
}{
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whom|vouch\w*|twins?|likeness|attendants?)\b`), "name the actor"},
	{regexp.MustCompile(`(?:^|[.:;|] |- )(What|Who|Whatever|Those that|That of|Such as are|Of those|Nothing of|None of|Neither of)\b[^?]*$`), "begin with the actor or the thing"},
	{regexp.MustCompile(`(?i)\b(has not the|have not the|is told of|are told of|is there already|of now\b|by and by|is of no use|as it is there|makes itself|comes into being|is looked at again|is taken away|mend(s|ed)?\b)`), "use the verb that the field uses"},
	{regexp.MustCompile(`(?i)\bthere (is|are) (no such|nothing)\b`), "say what was not found"},
}

// code matches code, links and URLs, which the rules exempt.
var code = regexp.MustCompile("`[^`]*`|\\[[^]]*\\]\\([^)]*\\)|https?://\\S+")

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
			for _, d := range dialect {
				if word := d.pattern.FindString(code.ReplaceAllString(line, "")); word != "" {
					t.Errorf("%s:%d: %s in place of %q", name, i+1, d.advice, word)
				}
			}
		}
	}
}
