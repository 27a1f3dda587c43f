package run

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestKinds checks that the table of kinds contains each declared kind once.
func TestKinds(t *testing.T) {
	source, err := os.ReadFile("kind.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\tEvent\w+ +EventKind = "(.+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, m[1])
	}
	for _, k := range kinds {
		listed = append(listed, string(k.name))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("declared %q, listed %q", declared, listed)
	}
}
