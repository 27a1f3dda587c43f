package mcptool_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
)

// TestName: what models are given for any two tools of any two servers differs, and is a name
// that providers take.
func TestName(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	labels := []string{"a", "a_", "a__b", "mcp", "mcp_", "A", strings.Repeat("l", 64)}
	tools := []string{"b", "_b", "__b", "b__c", "c", "search docs", "search.docs", "søk", strings.Repeat("t", 128), strings.Repeat("t", 127), "_", "", mcptool.Name("mcp", "b")[len("mcp__"):]}
	seen := map[string][2]string{}
	for _, label := range labels {
		for _, tool := range tools {
			name := mcptool.Name(label, tool)
			if !valid.MatchString(name) || name != mcptool.Name(label, tool) {
				t.Errorf("%q of %q is called %q", tool, label, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%q is %q of %q and %q of %q", name, tool, label, other[1], other[0])
			}
			seen[name] = [2]string{label, tool}
		}
	}
	if got := mcptool.Name("docs", "ask_question"); got != "docs__ask_question" {
		t.Errorf("got %q", got)
	}
}
