package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A key that is given leads to this machine's server also where no server has left its
// address, such as one with another data folder.
func TestAGivenKeyNeedsNoRecordOfAServer(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sk-atoll-x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATOLL_LISTEN": "127.0.0.1:7777"}
	a := &target{app: &cli{getenv: func(name string) string { return env[name] }}, keyFile: key, dataDir: t.TempDir(), local: devKeyFile}
	if got, err := a.find(); err != nil || got != (endpoint{"http://127.0.0.1:7777", "sk-atoll-x"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
