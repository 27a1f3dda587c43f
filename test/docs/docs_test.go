package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestEveryCommand runs every page.
func TestEveryCommand(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("found %d pages, %v", len(pages), err)
	}
	commands := 0
	for _, path := range append([]string{filepath.Join(root, "README.md")}, pages...) {
		p, err := read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, left := range p.left {
			t.Log("not run: " + left)
		}
		commands += len(p.steps)
		if len(p.steps) == 0 {
			continue
		}
		name, _ := filepath.Rel(root, path)
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) { try(t, p, root) })
	}
	if commands < 100 {
		t.Errorf("there were %d commands; are the blocks read?", commands)
	}
}

func try(t *testing.T, p *page, root string) {
	dir, err := os.MkdirTemp("", "atoll-docs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	results, rest, err := p.run(t.Context(), root, dir)
	if err != nil {
		t.Errorf("%v\n%s", err, rest)
	}
	for _, r := range results {
		switch {
		case !r.ran:
			t.Fatalf("%s:%d was not reached\n%s%s", p.name, r.line, rest, log(dir))
		case r.status != 0:
			t.Fatalf("%s:%d: %s\nfailed:\n%s%s", p.name, r.line, r.text, r.output, log(dir))
		case r.prints != nil && !same(r.prints, r.output):
			t.Errorf("%s:%d: %s\nprints\n%s\nand the page has\n%s", p.name, r.line, r.text, r.output, strings.Join(r.prints, "\n"))
		}
	}
}

// log is the end of what a page's server wrote.
func log(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "server.log"))
	if err != nil {
		return ""
	}
	return "\nthe server's log ends with\n" + string(text[max(0, len(text)-2000):])
}

func TestSame(t *testing.T) {
	for name, c := range map[string]struct {
		shown  string
		output string
		want   bool
	}{
		"equal":            {"a\nb", "a\nb\n", true},
		"other":            {"a", "b\n", false},
		"ids":              {"trc_00112233", "trc_99aabbcc\n", true},
		"times and sizes":  {"made 2026-11-21 10:23:38 in 5 ms", "made 2027-01-01 00:00:00 in 12.5 ms", true},
		"columns":          {"NAME    SIZE", "NAME  SIZE", true},
		"anything":         {"{\"a\":1,…}", "{\"a\":1,\"b\":2}", true},
		"any lines":        {"a\n…\nz", "a\nb\nc\nz\n", true},
		"no lines":         {"a\n…\nz", "a\nz\n", true},
		"more than shown":  {"a", "a\nb\n", false},
		"less than shown":  {"a\nb", "a\n", false},
		"a pattern's text": {"a.c", "abc", false},
	} {
		if got := same(strings.Split(c.shown, "\n"), c.output); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParse(t *testing.T) {
	p := &page{name: "page.md"}
	err := p.parse(strings.Split("<!-- test: server -->\n<!-- test: setup\ntouch x\n-->\ntext\n```sh\na\nb\n```\n<!-- test: fails -->\n```console\n$ c 'd\n> e'\nout\n$ f \\\n  g\n```\n"+
		"<!-- test: elsewhere cloud -->\n```sh\nh\n```\n- in a list\n  ```sh\n  i\n  ```\n```json\n{}\n```\n", "\n"))
	if err != nil || !p.server || len(p.steps) != 5 || len(p.left) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, want := range []string{"\ntouch x\n", "a\nb", "c 'd\ne'", "f \\\n  g", "i"} {
		if p.steps[i].text != want {
			t.Errorf("step %d is %q, not %q", i, p.steps[i].text, want)
		}
	}
	if s := p.steps[2]; s.kind != fails || len(s.prints) != 1 || s.prints[0] != "out" || p.steps[4].kind != script {
		t.Errorf("%+v", p.steps)
	}
	for _, bad := range []string{"<!-- test: what -->", "<!-- test: elsewhere laziness -->", "```sh\nx", "```console\nout\n```", "<!-- test: setup\nx"} {
		if err := (&page{}).parse(strings.Split(bad, "\n")); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
