package catalogue

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/prose"
)

const root = "../.."

// TestCatalogue lists every text that a person or a model reads, with -v, and fails for wording that a rule of prose rejects.
func TestCatalogue(t *testing.T) {
	texts, err := goTexts(root, "api", "cmd", "internal", "sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	inCode := map[string]bool{}
	for _, x := range texts {
		inCode[x.Text] = true
	}
	document, err := openapi(root)
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, slices.DeleteFunc(document, func(x Text) bool {
		seen := inCode[x.Text]
		inCode[x.Text] = true
		return seen
	})...)
	for _, library := range []func() ([]Text, error){
		func() ([]Text, error) {
			texts, err := comments(root, "sdk/go")
			for i := range texts {
				texts[i].Kind = SDK
			}
			return texts, err
		},
		func() ([]Text, error) {
			return docstrings(root, "sdk/python/src", ".py", docstring, "_sync", "types.py", "params.py", "_idempotent.py")
		},
		func() ([]Text, error) {
			return docstrings(root, "sdk/typescript/src", ".ts", doccomment, "wire.gen.ts")
		},
	} {
		found, err := library()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, found...)
	}
	for _, kind := range Kinds[:len(Kinds)-1] {
		found, hits := 0, []string(nil)
		for _, x := range texts {
			if x.Kind != kind {
				continue
			}
			found++
			if testing.Verbose() {
				if found == 1 {
					fmt.Printf("\n== %s ==\n", kind)
				}
				fmt.Printf("%s:%d: %s\n", x.File, x.Line, indented(x.Text))
			}
			for _, hit := range prose.Text(x.Text) {
				hits = append(hits, fmt.Sprintf("%s:%d: %s in place of %q: %s", x.File, x.Line, hit.Advice, hit.Text, indented(x.Text)))
			}
		}
		compare(t, kind, hits)
		if found < least[kind] {
			t.Errorf("found %d texts of %q, fewer than %d: this test no longer sees them", found, kind, least[kind])
		}
	}
}

// least is how many texts of a kind there are at least; fewer mean that the search is broken.
var least = map[string]int{Errors: 1000, Help: 300, Logs: 80, Output: 80, Settings: 80, Tools: 100, API: 800, SDK: 500, Other: 100}

// indented is a text with its further lines indented.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// compare fails the test if texts of a kind, or comments of a directory, have more hits than allowed.
func compare(t *testing.T, name string, hits []string) {
	t.Helper()
	switch most := ceilings[name]; {
	case len(hits) > most:
		t.Errorf("%s: %d hits, more than %d:\n%s", name, len(hits), most, strings.Join(hits, "\n"))
	case len(hits) < most:
		t.Logf("%s: %d hits; lower the ceiling from %d", name, len(hits), most)
	}
}

// TestComments checks the comments of exported identifiers.
func TestComments(t *testing.T) {
	texts, err := comments(root, "internal/core", "internal/control", "internal/agent")
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 2000 {
		t.Errorf("found only %d comments", len(texts))
	}
	hits := map[string][]string{}
	for _, x := range texts {
		dir := filepath.ToSlash(filepath.Dir(x.File))
		for _, hit := range prose.Text(x.Text) {
			hits[dir] = append(hits[dir], fmt.Sprintf("%s:%d: %s in place of %q: %s", x.File, x.Line, hit.Advice, hit.Text, indented(x.Text)))
		}
	}
	for dir, found := range hits {
		compare(t, dir, found)
	}
}
