package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataFolderIsClosed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode os.FileMode // 0: there is none
		says string
		want os.FileMode
	}{
		"new":      {0, "", 0o700},
		"closed":   {0o700, "", 0o700},
		"readable": {0o755, "restricted it to its owner", 0o700},
		"writable": {0o777, "restricted it to its owner", 0o700},
		"group's":  {0o750, "restricted it to its owner", 0o700},
		"shared":   {0o777 | os.ModeSticky, "a folder only for Atoll", 0o777 | os.ModeSticky},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if test.mode != 0 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, test.mode); err != nil { // whatever the umask is
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		if err := openDataFolder(dir, slog.New(slog.NewTextHandler(&said, nil))); err != nil {
			said.WriteString(err.Error())
		}
		if got := said.String(); !strings.Contains(got, test.says) || test.says == "" && got != "" {
			t.Errorf("%s: it says %q", name, got)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode()&^os.ModeDir != test.want {
			t.Errorf("%s: it is %v, %v", name, info, err)
		}
	}
	if err := openDataFolder("/", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "a folder only for Atoll") {
		t.Errorf("the root of the machine: %v", err)
	}
}
