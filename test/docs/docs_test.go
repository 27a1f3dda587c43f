package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// only is a regular expression of pages, to work on one.
var only = os.Getenv("ATOLL_TEST_PAGES")

// TestEveryCommand runs every page. Pages that need a server share one; each of the
// others has a machine of its own.
func TestEveryCommand(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	shared := &machine{root: root, server: true}
	var machines []*machine
	commands := 0
	var last []*page
	for _, p := range pages(t, root) {
		for _, left := range p.left {
			t.Log("not run: " + left)
		}
		commands += len(p.steps)
		switch {
		case len(p.steps) == 0:
		case p.server && strings.HasSuffix(p.name, "/tenants.md"): // makes the tenant that the others suppose
			shared.pages = slices.Insert(shared.pages, 0, p)
		case p.server && strings.Contains(p.name, "/operate/"): // restore a backup, in which sandboxes of other pages are missing
			last = append(last, p)
		case p.server:
			shared.pages = append(shared.pages, p)
		default:
			machines = append(machines, &machine{root: root, pages: []*page{p}})
		}
	}
	shared.pages = append(shared.pages, last...)
	if only == "" && commands < 180 {
		t.Errorf("there are %d commands; are the blocks read?", commands)
	}
	t.Logf("%d commands", commands)
	t.Cleanup(func() { // mount points of all machines, unless this machine has files there
		for _, dir := range []string{"/backups", "/etc/atoll"} {
			_ = os.Remove(dir)
		}
	})
	var server sync.WaitGroup
	server.Go(func() { shared.try(t) }) // beside the machines that have a page each
	for _, m := range machines {
		m.try(t)
	}
	server.Wait()
}

// pages reads README.md and docs/.
func pages(t *testing.T, root string) (all []*page) {
	t.Helper()
	for _, path := range append([]string{filepath.Join(root, "README.md")}, paths(t, root)...) {
		if ok, err := regexp.MatchString(only, path); err != nil || !ok {
			continue
		}
		p, err := read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, p)
	}
	return all
}

// paths lists the pages of docs/, in alphabetical order. It leaves out the pages of the client
// libraries, whose code test/sdk runs.
func paths(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "sdk" {
			return filepath.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 20 {
		t.Fatalf("found %d pages, %v", len(all), err)
	}
	return all
}

func (m *machine) try(t *testing.T) {
	if len(m.pages) == 0 {
		return
	}
	dir, err := os.MkdirTemp("", "atoll-docs-")
	if err != nil {
		t.Error(err)
		return
	}
	m.dir = dir
	t.Cleanup(func() {
		// A server that ends with the machine cleans nothing up.
		for i := range m.pages {
			if err := atolltest.Trace(filepath.Join(m.page(i), "data")).Sweep(); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	results, rest, err := m.run(t.Context())
	if err != nil || rest != "" {
		t.Errorf("%v\n%s", err, rest)
	}
	defer func() {
		if t.Failed() {
			t.Log(log(dir))
		}
	}()
	for _, p := range m.pages {
		name, err := filepath.Rel(m.root, p.name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			for _, r := range results[p] {
				switch {
				case !r.ran:
					t.Fatalf("%s:%d was not reached", p.name, r.line)
				case r.status != 0:
					t.Fatalf("%s:%d: %s\nfailed:\n%s", p.name, r.line, r.text, r.output)
				case r.prints != nil && !same(r.prints, r.output):
					t.Errorf("%s:%d: %s\nprints\n%s\nand the page has\n%s", p.name, r.line, r.text, r.output, strings.Join(r.prints, "\n"))
				}
			}
		})
	}
}

// log is the end of what a machine's server wrote.
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
		"<!-- test: elsewhere host -->\n```sh\nh\n```\n- in a list\n  ```sh\n  i\n  ```\n```json\n{}\n```\n", "\n"))
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
