package service

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestLostSecretKey starts a server whose secret-key is gone: it must say so,
// rather than make a key that opens nothing, and go on once the file is back.
func TestLostSecretKey(t *testing.T) {
	for engine, env := range map[string]func(t *testing.T) []string{
		"sqlite":   func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string { return []string{"ATOLL_DATABASE=" + atolltest.Postgres(t).URL} },
	} {
		t.Run(engine, func(t *testing.T) {
			o := atolltest.Options{Env: env(t)}
			s := atolltest.Start(t, o)
			o.Data = s.Keep(t)
			admin := s.AdminKey(t)
			s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/dev/environments", map[string]any{
				"name": "secretive", "image": atolltest.Image, "secrets": map[string]string{"TOKEN": "of-the-test"},
			}).Into(t, http.StatusCreated, nil)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			path, aside := filepath.Join(o.Data, "secret-key"), filepath.Join(t.TempDir(), "secret-key")
			if err := os.Rename(path, aside); err != nil {
				t.Fatal(err)
			}
			for range 2 { // nor does a second try
				lost, err := atolltest.Launch(t.Context(), o)
				if err == nil {
					t.Fatal(errors.Join(errors.New("it started without its key"), lost.Close()))
				}
				if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 2 {
					t.Errorf("it did not end with 2: %v", err)
				}
				for _, want := range []string{"sealed with another key", path + " is missing", "from a backup"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("it does not say %q: %v", want, err)
					}
				}
			}

			if err := os.Rename(aside, path); err != nil {
				t.Fatal(err)
			}
			again := atolltest.Start(t, o)
			var key struct{ Key string }
			again.Must(t, admin, http.MethodPost, "/v1/admin/tenants/dev/keys", map[string]any{"name": "secretive", "environment": "secretive"}).Into(t, http.StatusCreated, &key)
			var ran struct{ Stdout string }
			again.Must(t, key.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "import os; print(len(os.environ['TOKEN']))"}).Into(t, http.StatusOK, &ran)
			if ran.Stdout != "11\n" {
				t.Errorf("the program's secret has length %q", ran.Stdout)
			}
		})
	}
}
