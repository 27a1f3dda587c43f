package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestOneVersion checks that everything that Atoll publishes has the version in the file.
func TestOneVersion(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Version) {
		t.Fatalf("the version is %q", Version)
	}
	root := filepath.Join("..", "..", "..")
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var document struct{ Info struct{ Version string } }
	var lock, npm struct{ Version string }
	for name, into := range map[string]any{"api/openapi.json": &document, "sdk/typescript/package.json": &npm, "sdk/typescript/package-lock.json": &lock} {
		if err := json.Unmarshal(read(name), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	python := regexp.MustCompile(`__version__ = "([^"]*)"`).FindSubmatch(read("sdk/python/src/atoll/_version.py"))
	if python == nil {
		t.Fatal("the Python library has no version")
	}
	for name, got := range map[string]string{"the API": document.Info.Version, "TypeScript": npm.Version, "TypeScript's lock": lock.Version, "Python": string(python[1])} {
		if got != Version {
			t.Errorf("%s has the version %q, and VERSION says %q", name, got, Version)
		}
	}
}
