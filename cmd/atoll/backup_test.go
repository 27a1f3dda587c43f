package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
)

func TestBackupAndRestore(t *testing.T) {
	dir, into := t.TempDir(), filepath.Join(t.TempDir(), "data")
	box, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "atoll.db"), Seal: box})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	file := filepath.Join(t.TempDir(), "b.tar.zst")
	r := atoll(t, "", nil, "backup", "--data-dir", dir, file)
	if r.code != 0 || !strings.Contains(r.out, "backed up: 1 files") || !strings.Contains(r.out, "not in it: named sandboxes") || !strings.Contains(r.out, "not in it: the key that encrypts secrets") {
		t.Fatalf("backup: %+v", r)
	}
	if r := atoll(t, "", nil, "restore", "--check", file); r.code != 0 || !strings.Contains(r.out, "whole") {
		t.Errorf("restore --check: %+v", r)
	}
	if r := atoll(t, "", nil, "restore", "--data-dir", into, file); r.code != 0 || !strings.Contains(r.out, "restored") {
		t.Errorf("restore: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(into, "atoll.db")); err != nil {
		t.Error(err)
	}
	if r := atoll(t, "", nil, "restore", "--data-dir", into, file); r.code != exitFailure || !strings.Contains(r.err, "is not empty") {
		t.Errorf("restore into a used folder: %+v", r)
	}
	if r := atoll(t, "", nil, "backup", "--data-dir", dir, "--database", "postgres://x", filepath.Join(t.TempDir(), "rest")); r.code != 0 || !strings.Contains(r.out, "pg_dump") {
		t.Errorf("backup beside PostgreSQL: %+v", r)
	}
	if r := atoll(t, "", nil, "backup", "--data-dir", into+"-none", filepath.Join(t.TempDir(), "x")); r.code != exitFailure {
		t.Errorf("backup of nothing: %+v", r)
	}
}
