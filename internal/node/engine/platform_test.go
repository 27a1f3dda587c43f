package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

func TestAnotherUsersStateFolderIsRefused(t *testing.T) {
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

// TestStateElsewhere checks that processes of a data folder respect each other
// when one has its state in memory and the other on disk.
func TestStateElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // the sandbox's kernel runs as the user nobody
		t.Fatal(err)
	}
	disk := platformIn(t, dir, filepath.Join(dir, "disk"))
	memory := platformIn(t, dir, filepath.Join(dir, "memory"))
	first, err := openHost(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	other := memory
	other.Name = NewName()
	second, err := openHost(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.disk); err != nil {
		t.Errorf("the folder of a living process is gone: %v", err)
	}
	if _, err := openHost(t.Context(), memory); err == nil {
		t.Error("two processes of one name")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	// The first ends without a word, and leaves something.
	left := filepath.Join(first.disk, "sb-0123456789abcdef")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.closer.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := openHost(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what an earlier process left on disk is still there: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "memory")); !os.IsNotExist(err) {
		t.Errorf("the folder in memory is still there: %v", err)
	}
}

func platformIn(t *testing.T, dir, state string) Platform {
	t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(binary)
	return Platform{
		Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
		State: state, Disk: filepath.Join(dir, "disk"), Name: Server, Log: slog.New(slog.DiscardHandler),
	}
}
