package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// records opens the records that a command left in a data folder.
func records(t *testing.T, dir string) *store.DB {
	t.Helper()
	key, err := seal.KeyFile(filepath.Join(dir, "secret-key"))
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "atoll.db"), Seal: box, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// operatorKeys are the keys of the tenant operator in a data folder.
func operatorKeys(t *testing.T, dir string) []tenant.Key {
	t.Helper()
	db := records(t, dir)
	defer db.Close()
	operator, err := db.Tenants().Tenant(t.Context(), tenant.Operator)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := db.Tenants().Keys(t.Context(), operator.ID)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestFirstStartWithoutImage checks that a start that finds no image, and cannot build one, leaves
// everything as it was and names the command that helps.
func TestFirstStartWithoutImage(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // without mmdebstrap
	dir := filepath.Join(t.TempDir(), "data")
	for name, want := range map[string]string{"": "apt-get install mmdebstrap", "tools": "'atoll image import SOURCE --name tools --data-dir " + dir + "'"} {
		got := atoll(t, "", map[string]string{"ATOLL_DATA_DIR": dir, "ATOLL_IMAGE": name, "ATOLL_LISTEN": "127.0.0.1:0", "ATOLL_ROOTLESS": "never"}, "serve")
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("image %q: exit code %d, no %q in %s", name, got.code, want, got.err)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("image %q: the data folder was made (%v)", name, err)
		}
	}
}

// TestFailedStartMakesNoAdminKey checks that a first start that fails after it opened the records
// does not use up the admin key, and that the key can be recovered.
func TestFailedStartMakesNoAdminKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	image := filepath.Join(dir, "images", "default")
	if err := os.MkdirAll(image, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "image.json"), []byte(`{"version": 1, "name": "default"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATOLL_DATA_DIR": dir, "ATOLL_LISTEN": "127.0.0.1:0", "ATOLL_ROOTLESS": "never", "ATOLL_BLOBS": "bogus://bucket"}
	if got := atoll(t, "", env, "serve"); got.code != exitFailure || !strings.Contains(got.err, "blob store: ") || strings.Contains(got.err, "admin key") {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	if keys := operatorKeys(t, dir); len(keys) != 0 {
		t.Fatalf("the failed start stored %d admin keys", len(keys))
	}
	keyFile := filepath.Join(dir, adminKeyFile)
	if _, err := os.Lstat(keyFile); !os.IsNotExist(err) {
		t.Errorf("the failed start left %s (%v)", adminKeyFile, err)
	}

	if got := atoll(t, "", map[string]string{"ATOLL_DATA_DIR": t.TempDir()}, "key", "recover-admin"); got.code != exitFailure || !strings.Contains(got.err, "holds no records") {
		t.Errorf("an empty folder: exit code %d, %s", got.code, got.err)
	}
	if got := atoll(t, "", env, "key", "recover-admin", "--base-url", "http://127.0.0.1:1"); got.code != exitUsage {
		t.Errorf("another server: exit code %d, %s", got.code, got.err)
	}
	got := atoll(t, "", env, "key", "recover-admin", "--revoke-others")
	kept, err := os.ReadFile(keyFile)
	if key := string(bytes.TrimSpace(kept)); got.code != exitOK || err != nil || key == "" || !strings.Contains(got.err, key) {
		t.Fatalf("exit code %d, the file has %q (%v), shown is %s", got.code, kept, err, got.err)
	}
	if keys := operatorKeys(t, dir); len(keys) != 1 || keys[0].Name != "recovered-1" {
		t.Errorf("the keys are %+v", keys)
	}
	storeSettings(t, dir, env)
}

// storeSettings checks the commands that store settings in the records of a data folder.
func storeSettings(t *testing.T, dir string, env map[string]string) {
	t.Helper()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"set model_allow 10.0.0.7,models.example.com", exitOK, ""},
		{"set model_allow 10.0.0.8", exitOK, ""},
		{"set cors_origins https://app.example.com", exitOK, ""},
		{"list", exitOK, "cors_origins: https://app.example.com\nmodel_allow: 10.0.0.8\n"},
		{"unset cors_origins", exitOK, ""},
		{"unset cors_origins", exitFailure, "stored setting not found"},
		{"set cors_origins app.example.com", exitFailure, "cors_origins: "},
		{"set webhook_allow a/b", exitFailure, "webhook_allow: "},
		{"set pool_size 4", exitFailure, "cannot change while servers run"},
		{"list", exitOK, "model_allow: 10.0.0.8\n"},
	} {
		got := atoll(t, "", env, append([]string{"config"}, strings.Fields(c.args)...)...)
		if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("config %s: %d, %s%s", c.args, got.code, got.out, got.err)
		}
	}
	db := records(t, dir)
	defer db.Close()
	operator, err := db.Tenants().Tenant(t.Context(), tenant.Operator)
	if err != nil {
		t.Fatal(err)
	}
	events, err := db.Tenants().PolicyEvents(t.Context(), operator.ID)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events {
		if strings.HasPrefix(e.Field, "setting/") && strings.HasPrefix(e.Actor, "host:") {
			told = append(told, e.Field+" "+e.Old+">"+e.New)
		}
	}
	want := []string{
		"setting/model_allow >10.0.0.7,models.example.com", "setting/model_allow 10.0.0.7,models.example.com>10.0.0.8",
		"setting/cors_origins >https://app.example.com", "setting/cors_origins https://app.example.com>",
	}
	if !slices.Equal(told, want) {
		t.Errorf("recorded are %q", told)
	}
}

// TestGiveToOwnerFollowsNoLink checks that root gives away no file that the owner of a data folder
// has put a link to in place of the key.
func TestGiveToOwnerFollowsNoLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run this test as root: only root can give files away")
	}
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "root's")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, adminKeyFile)
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if err := giveToOwner(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid != 0 {
		t.Error("the file behind the link was given away")
	}
}

// TestDiscardedAdminKey checks that the key of before is its owner's again after root could not store
// another one.
func TestDiscardedAdminKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{DataDir: dir}
	if err := writeKey(adminKeyPath(cfg), "before", false); err != nil {
		t.Fatal(err)
	}
	discard, err := keepAdminKey(cfg, "after")
	if err != nil {
		t.Fatal(err)
	}
	if err := discard(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(adminKeyPath(cfg))
	if err != nil || string(text) != "before\n" {
		t.Fatalf("the file has %q, %v", text, err)
	}
	info, err := os.Stat(adminKeyPath(cfg))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid != 12345 {
		t.Error("the file is root's")
	}
}
