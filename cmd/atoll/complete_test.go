package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestUsageWord(t *testing.T) {
	for _, c := range []struct {
		use  string
		at   int
		word string
		many bool
	}{
		{"list", 0, "", false},
		{"show TENANT NAME", 0, "TENANT", false},
		{"show TENANT NAME", 1, "NAME", false},
		{"show TENANT NAME", 2, "", false},
		{"rm TENANT NAME…", 4, "NAME", true},
		{"logs NAME [PROCESS]", 1, "PROCESS", false},
		{"exec [flags] NAME COMMAND [ARGUMENT…]", 0, "NAME", true},
	} {
		if word, many := usageWord(c.use, c.at); word != c.word || many != c.many {
			t.Errorf("%s, argument %d: %q %v", c.use, c.at, word, many)
		}
	}
}

// TestOneVerbEach checks that a verb is the same for every noun.
func TestOneVerbEach(t *testing.T) {
	root := newRoot(func(string) string { return "" }, stdio{strings.NewReader(""), &strings.Builder{}, &strings.Builder{}})
	deletes := 0
	for _, noun := range root.Commands() {
		for _, verb := range noun.Commands() {
			if !verb.IsAvailableCommand() {
				continue
			}
			switch verb.Name() {
			case "rm", "remove", "destroy", "ls", "get-all", "describe", "inspect":
				if noun.Name() != "thread" {
					t.Errorf("%s: want delete, list or show", verb.CommandPath())
				}
			case "delete":
				deletes++
			}
			for name, others := range aliases {
				if verb.Name() == name && !includes(verb, others) {
					t.Errorf("%s has the aliases %q, want %q", verb.CommandPath(), verb.Aliases, others)
				}
			}
		}
	}
	if deletes < 7 {
		t.Errorf("%d nouns can be deleted", deletes)
	}
}

func includes(cmd *cobra.Command, names []string) bool {
	for _, name := range names {
		if !slices.Contains(cmd.Aliases, name) {
			return false
		}
	}
	return true
}

func TestCompleteNames(t *testing.T) {
	o, _ := newOperator(t)
	o.says("tenant create acme")
	o.says("__complete env show a", "acme\n")
	o.says("__complete env show dev", "dev")
	if out, _ := o.run(0, "__complete", "env", "show", "dev", ""); !strings.HasPrefix(out, "default\n") {
		t.Errorf("got %q", out)
	}
	if out, _ := o.run(0, "__complete", "tenant", "create", ""); strings.Contains(out, "acme") {
		t.Errorf("a new one has the name of another: %q", out)
	}
	o.env["ATOLL_BASE_URL"] = "http://127.0.0.1:1"
	if out, _ := o.run(0, "__complete", "env", "show", ""); !strings.HasPrefix(out, ":4") {
		t.Errorf("without a server: %q", out)
	}
}
