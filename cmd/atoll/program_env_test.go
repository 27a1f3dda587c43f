package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vars")
	if err := os.WriteFile(file, []byte("# comment\n\n  A=1\r\nB= a = b \nHERE\nGONE\nEMPTY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &cli{getenv: func(name string) string { return map[string]string{"HERE": "x", "TOO": "y"}[name] }}
	e := programEnv{app: a, files: []string{file}, vars: []string{"A=2", "TOO", "NOT"}}
	got, err := e.values()
	want := map[string]string{"A": "2", "B": " a = b ", "HERE": "x", "EMPTY": "", "TOO": "y"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []programEnv{{app: a, vars: []string{"=x"}}, {app: a, vars: []string{""}}, {app: a, files: []string{file + "-none"}}} {
		if _, err := bad.values(); err == nil {
			t.Errorf("%q %q: no error", bad.vars, bad.files)
		}
	}
}

func FuzzEnvFile(f *testing.F) {
	f.Add("A=1\n# x\nB\n=\n")
	f.Add("\x00=\xff\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "vars")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := programEnv{app: &cli{getenv: func(string) string { return "" }}, files: []string{file}}
		got, err := e.values()
		if err != nil {
			return
		}
		for name := range got {
			if name == "" || strings.ContainsAny(name, "=\n") {
				t.Errorf("%q is a name", name)
			}
		}
	})
}
