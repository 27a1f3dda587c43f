package localserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// lastFile has the data folder of the last server that a user started, as JSON.
const lastFile = "last-server.json"

// last is the content of lastFile.
type last struct {
	DataDir string `json:"data_dir"`
}

// userState is the folder for a user's state: $XDG_STATE_HOME/atoll or ~/.local/state/atoll, "" for
// a user without a home.
func userState(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "atoll")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "atoll")
	}
	return ""
}

// Remember records the data folder of a server that its user has just started, for the user's
// later commands. A user without a home has no record.
func Remember(getenv func(string) string, dataDir string) error {
	dir := userState(getenv)
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeJSON(dir, lastFile, last{dataDir})
}

// Last returns the data folder of the last server that this user started and that still runs.
// The error is ErrNone without one.
func Last(getenv func(string) string) (dataDir string, err error) {
	dir := userState(getenv)
	if dir == "" {
		return "", ErrNone
	}
	file, err := os.Open(filepath.Join(dir, lastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return "", err
	}
	var l last
	if err := json.Unmarshal(text, &l); err != nil || !filepath.IsAbs(l.DataDir) {
		return "", fmt.Errorf("%s names no data folder: delete it, or pass --data-dir", file.Name())
	}
	if _, err := Find(l.DataDir); err != nil {
		return "", err
	}
	return l.DataDir, nil
}
