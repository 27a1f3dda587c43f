package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSaveFiles: names of shared files are a model's. They replace nothing unless the user says so.
func TestSaveFiles(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return string(text)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.csv"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	a := &cli{std: stdio{err: &said}}
	save := func(force bool, names ...string) error {
		var all []sharedItem
		for _, name := range names {
			all = append(all, sharedItem{id: "file_" + name, name: name})
		}
		return a.saveFiles(dir, force, all, func(id string, to io.Writer) error {
			if strings.Contains(id, "broken") {
				return errors.New("gone")
			}
			_, err := io.WriteString(to, id)
			return err
		})
	}
	err := save(false, "report.csv", ".bashrc", "../.profile", "a\x1b[2J\u202eb\n.txt", "x/two.txt", "two.txt", "broken")
	if err == nil || !strings.Contains(err.Error(), "report.csv: a file with that name exists; --force") || strings.Count(err.Error(), "begin with a dot") != 2 || !strings.Contains(err.Error(), "broken: gone") {
		t.Errorf("%v", err)
	}
	if read("report.csv") != "mine" || read("two-2.txt") != "file_two.txt" || strings.ContainsAny(said.String(), "\x1b\u202e") {
		t.Errorf("%q, %q", read("report.csv"), said.String())
	}
	if err := save(true, "report.csv", ".bashrc"); err == nil || read("report.csv") != "file_report.csv" {
		t.Errorf("%v, %q", err, read("report.csv"))
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"a_[2J_b_.txt", "report.csv", "two-2.txt", "two.txt"}; !slices.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
}
