package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestCoverage finds the page that documents each setting, operation, event, error code and
// metric, and logs it. TestReference of cmd/atoll does the same for commands and flags.
func TestCoverage(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	texts := map[string]string{}
	for _, path := range paths(t, root) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	expect := func(kind string, minimum int, names []string) {
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) < minimum {
			t.Errorf("found %d names of %s, want at least %d", len(names), kind, minimum)
		}
		for _, name := range names {
			var pages []string
			for page, text := range texts {
				if strings.Contains(text, "`"+name+"`") {
					pages = append(pages, page)
				}
			}
			slices.Sort(pages)
			if len(pages) == 0 {
				t.Errorf("%s %s: no page has `%s`", kind, name, name)
				continue
			}
			t.Logf("%s %s: %s", kind, name, pages[0])
		}
	}

	var settings []string
	for _, s := range config.Settings() {
		settings = append(settings, s.Name)
	}
	expect("setting", 50, settings)
	operations, events := described(t)
	expect("operation", 150, operations)
	sources, edges := goSources(t, root, "internal"), goSources(t, root, "internal/edge")
	expect("event", 40, append(events, named(edges, `"(response\.[a-z_.]+)"`)...))
	expect("error code", 10, append(httpapi.Codes(), named(sources, `ProtocolError\{http\.\w+, "([a-z_]+)"`)...))
	expect("metric", 40, named(strings.Join(metricRows(t, filepath.Join(root, "internal")), ""), "`(atoll_[a-z_]+)`"))
}

// described lists the operations of the OpenAPI document, and the events of its streams.
func described(t *testing.T) (operations, events []string) {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	if err := json.Unmarshal(api.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			if slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				operations = append(operations, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, name := range []string{"Event", "SessionEvent", "ProcessEvent", "CodeEvent", "SandboxChange"} {
		of := doc.Components.Schemas[name].Properties["type"].Enum
		if len(of) == 0 {
			t.Errorf("the type %s has no event types", name)
		}
		events = append(events, of...)
	}
	return operations, events
}

// goSources returns the sources in a folder, without tests.
func goSources(t *testing.T, root, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// named returns the first group of every match of a pattern.
func named(text, pattern string) (out []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}
