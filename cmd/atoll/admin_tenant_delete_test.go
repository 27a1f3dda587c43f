package main

import (
	"os"
	"strings"
	"testing"
)

// TestConfirmDeletion has a user at a terminal type names.
func TestConfirmDeletion(t *testing.T) {
	for _, c := range []struct{ typed, says string }{
		{"acme\n", ""}, {" acme \r\n", ""}, {"other\n", "nothing was deleted"}, {"\n", "nothing was deleted"}, {"y\n", "nothing was deleted"},
	} {
		user, program := openTerminal(t)
		if _, err := user.WriteString(c.typed); err != nil {
			t.Fatal(err)
		}
		var asked strings.Builder
		a := &cli{std: stdio{in: program, out: os.Stdout, err: &asked}}
		err := a.confirmDeletion("acme", false)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v", c.typed, err)
		}
		if !strings.Contains(asked.String(), "Type acme") {
			t.Errorf("asked %q", asked.String())
		}
	}
}
