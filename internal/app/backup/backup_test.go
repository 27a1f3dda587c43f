package backup

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// server is a data folder with what a server keeps there.
type server struct {
	dir string
	db  *store.DB
}

var secretKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)) + "\n"

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	s.db = storetest.SQLite(t, func(c *store.Config) { c.Path = filepath.Join(s.dir, Database) })
	s.put(t, "secret-key", secretKey)
	s.put(t, "admin-key", "sk-atoll-admin\n")
	s.put(t, "images/default/image.json", "{}")
	s.put(t, "images/default/rootfs.erofs", strings.Repeat("image", 1000))
	s.put(t, "images/.locks/default", "")
	s.put(t, "images/.tmp-1/rootfs.erofs", "half")
	s.put(t, "state/server/sb-1/sandbox.json", "{}")
	s.put(t, "nats/jetstream/x", "log")
	s.put(t, "blobs/outputs/ten_1/old.123.tmp", "half")
	return s
}

func (s *server) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run takes an execution through its life: its output becomes a blob, then it
// is recorded.
func (s *server) run(t *testing.T, n int) {
	t.Helper()
	id := fmt.Sprintf("trc_%032x", n)
	e := &execution.Execution{
		TraceID: id, Tenant: "ten_1", Key: "key_1", Environment: "env_1", Source: execution.SourceAPI, Delivery: execution.Inline,
		Language: execution.Bash, Status: execution.Running, Timeout: time.Minute, CreatedAt: time.Now(),
		Webhook: execution.WebhookTarget{URL: "https://example.com/", Secret: "a secret"},
	}
	if _, err := s.db.Executions().Admit(t.Context(), e, execution.Admission{}); err != nil {
		t.Error(err)
		return
	}
	s.put(t, "blobs/"+execution.OutputName("ten_1", id, execution.Stdout), "stdout of "+id)
	s.put(t, "blobs/"+execution.OutputName("ten_1", id, execution.Stderr), "")
	_, _, err := s.db.Executions().Conclude(t.Context(), execution.Result{TraceID: id, Status: execution.Success, Stored: true, CompletedAt: time.Now()}, nil)
	if err != nil {
		t.Error(err)
	}
}

func (s *server) config() Config {
	return Config{DataDir: s.dir, Version: "1.2.3", CopyDatabase: store.CopySQLite, Blobs: true, Images: []Image{{Name: "default", Source: "debian", Digest: "sha256:1"}}}
}

// targets are the two shapes of a backup.
func targets(t *testing.T, test func(t *testing.T, target string)) {
	for _, name := range []string{"folder", "archive.tar.zst"} {
		t.Run(name, func(t *testing.T) { test(t, filepath.Join(t.TempDir(), name)) })
	}
}

// A backup taken while executions are recorded is one moment of the records with
// every blob that they speak of.
func TestBackupUnderLoad(t *testing.T) {
	targets(t, func(t *testing.T, target string) {
		s := startServer(t)
		for n := range 20 {
			s.run(t, n)
		}
		stop, more := make(chan struct{}), make(chan struct{}, 1)
		var work sync.WaitGroup
		work.Go(func() {
			for n := 20; ; n++ {
				select {
				case <-stop:
					return
				default:
					s.run(t, n)
				}
				select {
				case more <- struct{}{}:
				default:
				}
			}
		})
		<-more
		m, err := Write(t.Context(), s.config(), target)
		<-more
		close(stop)
		work.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if m.Version != "1.2.3" || !m.Database || !m.Blobs || !m.SecretKey || m.WithImage || len(m.Images) != 1 {
			t.Errorf("the manifest says %+v", m)
		}
		if _, err := Check(t.Context(), target); err != nil {
			t.Error(err)
		}

		restored := filepath.Join(t.TempDir(), "data")
		if _, err := Restore(t.Context(), target, restored); err != nil {
			t.Fatal(err)
		}
		if names := list(t, restored); names != "admin-key atoll.db blobs secret-key" {
			t.Errorf("restored: %s", names)
		}
		key, err := os.ReadFile(filepath.Join(restored, "secret-key"))
		if err != nil || string(key) != secretKey {
			t.Errorf("secret-key: %q, %v", key, err)
		}
		db := storetest.SQLite(t, func(c *store.Config) { c.Path = filepath.Join(restored, Database) })
		var check string
		if err := db.SQL().QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
			t.Errorf("integrity: %s, %v", check, err)
		}
		finished, cursor := 0, ""
		for {
			page, next, err := db.Executions().List(t.Context(), execution.Filter{Tenant: "ten_1", Limit: 100, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				if e.Status == execution.Running {
					continue
				}
				finished++
				b, err := os.ReadFile(filepath.Join(restored, "blobs", execution.OutputName("ten_1", e.TraceID, execution.Stdout)))
				if err != nil || string(b) != "stdout of "+e.TraceID {
					t.Errorf("%s: %q, %v", e.TraceID, b, err)
				}
			}
			if cursor = next; next == "" {
				break
			}
		}
		// The database reads what the restored key has encrypted.
		e, err := db.Executions().Get(t.Context(), "ten_1", fmt.Sprintf("trc_%032x", 0))
		if err != nil || e.Webhook.Secret != "a secret" {
			t.Errorf("%+v, %v", e, err)
		}
		if finished < 20 {
			t.Errorf("%d executions are there", finished)
		}
	})
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestImagesAndPostgres(t *testing.T) {
	targets(t, func(t *testing.T, target string) {
		s := startServer(t)
		cfg := s.config()
		cfg.WithImages, cfg.CopyDatabase = true, nil
		m, err := Write(t.Context(), cfg, target)
		if err != nil || m.Database || !m.WithImage {
			t.Fatal(m, err)
		}
		restored := t.TempDir() // empty, which will do
		if _, err := Restore(t.Context(), target, restored); err != nil {
			t.Fatal(err)
		}
		if names := list(t, restored); names != "admin-key images secret-key" {
			t.Errorf("restored: %s", names)
		}
		if names := list(t, filepath.Join(restored, "images")); names != "default" {
			t.Errorf("restored images: %s", names)
		}
		if info, err := os.Stat(filepath.Join(restored, "images/default/rootfs.erofs")); err != nil || info.Size() != 5000 || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	targets(t, func(t *testing.T, target string) {
		s := startServer(t)
		s.run(t, 1)
		if _, err := Write(t.Context(), s.config(), target); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(t.Context(), s.config(), target); err == nil {
			t.Error("a backup is written over another")
		}
		full := t.TempDir()
		if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), target, full); err == nil || !strings.Contains(err.Error(), "not empty") || list(t, full) != "x" {
			t.Errorf("restored into a folder that is not empty: %v", err)
		}
	})
}

// A backup that cannot be finished leaves nothing.
func TestWriteFails(t *testing.T) {
	targets(t, func(t *testing.T, target string) {
		s := startServer(t)
		broken := errors.New("the disk is full")
		cfg := s.config()
		cfg.CopyDatabase = func(_ context.Context, _, to string) error {
			if err := os.WriteFile(to, []byte("half"), 0o600); err != nil {
				t.Error(err)
			}
			return broken
		}
		if _, err := Write(t.Context(), cfg, target); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if names := list(t, filepath.Dir(target)); names != "" {
			t.Errorf("left behind: %s", names)
		}
		s.run(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cfg = s.config()
		cfg.CopyDatabase = func(ctx context.Context, from, to string) error {
			defer cancel()
			return store.CopySQLite(ctx, from, to)
		}
		if _, err := Write(ctx, cfg, target); !errors.Is(err, context.Canceled) || list(t, filepath.Dir(target)) != "" {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// What was changed, cut or added since is refused, and nothing of it restored.
func TestDamage(t *testing.T) {
	s := startServer(t)
	s.run(t, 1)
	blob := "blobs/" + execution.OutputName("ten_1", fmt.Sprintf("trc_%032x", 1), execution.Stdout)
	refused := func(t *testing.T, source, want string) {
		t.Helper()
		into := filepath.Join(t.TempDir(), "data")
		if _, err := Restore(t.Context(), source, into); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("restored: %v, want %q", err, want)
		}
		if _, err := os.Lstat(into); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the failed restoration left something")
		}
		if _, err := Check(t.Context(), source); err == nil {
			t.Error("checked")
		}
	}
	for name, c := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"changed":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, blob), []byte("STDOUT of trc_"), 0o600) }, "digest differs"},
		"cut":         {func(dir string) error { return os.Truncate(filepath.Join(dir, Database), 4096) }, "digest differs"},
		"removed":     {func(dir string) error { return os.Remove(filepath.Join(dir, blob)) }, "lacks"},
		"added":       {func(dir string) error { return os.WriteFile(filepath.Join(dir, "blobs", "x"), nil, 0o600) }, "is not in the backup's manifest"},
		"strange":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "state"), nil, 0o600) }, "does not belong"},
		"link":        {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "blobs", "x")) }, "not a regular file"},
		"no manifest": {func(dir string) error { return os.Remove(filepath.Join(dir, manifestFile)) }, "no manifest"},
		"future": {func(dir string) error {
			path := filepath.Join(dir, manifestFile)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 2`), 1), 0o600)
		}, "format 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "backup")
			if _, err := Write(t.Context(), s.config(), dir); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, c.want)
		})
	}
	t.Run("cut archive", func(t *testing.T) {
		whole := filepath.Join(t.TempDir(), "b.tar.zst")
		if _, err := Write(t.Context(), s.config(), whole); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, len(b) / 2, len(b) - 1} {
			cut := filepath.Join(t.TempDir(), "cut.tar.zst")
			if err := os.WriteFile(cut, b[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, cut, "")
		}
		b[len(b)/3] ^= 1
		if err := os.WriteFile(whole, b, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, whole, "")
	})
}

func TestExpected(t *testing.T) {
	for name, want := range map[string]bool{
		Database: true, "secret-key": true, "blobs/a/b": true, "images/default/image.json": true,
		"": false, ".": false, "..": false, "/etc/passwd": false, "blobs": false, "blobs/../atoll.db": false, "../blobs/x": false,
		"blobs//x": false, "blobs/./x": false, "state/x": false, ".restoring/x": false, "atoll.db/x": false, "atoll.db-wal": false,
	} {
		if expected(name) != want {
			t.Errorf("expected(%q) is %t", name, !want)
		}
	}
}
