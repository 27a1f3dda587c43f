package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSomebodyElsesStateFolderIsRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"writable by others": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"a link": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			if err := make(state); err != nil {
				t.Fatal(err)
			}
			_, err := openHost(t.Context(), Platform{State: state, Disk: filepath.Join(dir, "disk"), Name: NewName(), Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), "state_dir") {
				t.Errorf("openHost: %v", err)
			}
		})
	}
}
