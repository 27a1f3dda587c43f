package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestCopy looks at the copy that make build has made: every change is in it, and the
// filters that were built ahead name the addresses that each kernel draws for itself.
func TestCopy(t *testing.T) {
	const copied = "../../bin/.gvisor/"
	for _, c := range slices.Concat(changes, fileChanges) {
		text, err := os.ReadFile(copied + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(text, []byte(c.new)) != 1 {
			t.Errorf("%s is without %q", c.file, c.new)
		}
	}
	text, err := os.ReadFile(copied + generatedFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string]string{"attached": "12", "sysmsg": "1234"} {
		body := regexp.MustCompile(`(?s)ready\.` + name + ` = \[\]readyInstruction\{\n(.*?)\n\t\}`).FindSubmatch(text)
		if body == nil {
			t.Errorf("there is no filter %s", name)
			continue
		}
		for _, part := range parts {
			if !bytes.Contains(body[1], []byte(", "+string(part)+"},\n")) {
				t.Errorf("the filter %s is the same for all addresses: nothing in it is marked %c", name, part)
			}
		}
	}
}
