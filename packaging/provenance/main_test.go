package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHash compares with the digest that sha256sum prints.
func TestHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("atoll\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := hash(path)
	if err != nil || sum != "cde0291570b7948e7149b4177a0cba5e4bf4cc7d25eeff8ec56ae4143a115412" {
		t.Errorf("%s, %v", sum, err)
	}
}
