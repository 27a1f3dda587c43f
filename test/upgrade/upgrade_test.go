package upgrade

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/control/jobs"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

var update = flag.Bool("update", false, "add the databases of the current schema to testdata")

const (
	sqliteFile   = "atoll.db.zst"
	postgresFile = "atoll.sql.zst"
)

// opened is a database with its queue of jobs.
type opened struct {
	*store.DB
	jobs      *jobs.Client
	delivered chan string
}

// open opens the database that a URL names or that is in a file.
func open(t *testing.T, cfg store.Config) *opened {
	t.Helper()
	o := &opened{delivered: make(chan string, 10)}
	cfg.Seal = storetest.Box(t)
	cfg.Enqueue = func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error { return o.jobs.Enqueue(ctx, tx, e) }
	var err error
	if o.DB, err = store.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	o.jobs, err = jobs.New(jobs.Config{
		DB: o.SQL(), Postgres: o.Postgres(), ID: "gateway-1", Log: slog.New(slog.DiscardHandler), Executions: o.Executions(),
		Deliver: func(_ context.Context, e *execution.Execution) (bool, error) {
			o.delivered <- e.TraceID
			return true, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// version is the schema that a database has.
func (o *opened) version(t *testing.T) int {
	t.Helper()
	var v int
	if err := o.SQL().QueryRow("SELECT max(version_id) FROM schema_versions").Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUpgrade(t *testing.T) {
	server := atolltest.Postgres(t)
	engines := map[string]struct {
		file  string
		fresh func(t *testing.T) store.Config
		save  func(t *testing.T, c store.Config) []byte
		load  func(t *testing.T, saved []byte) store.Config
	}{
		"sqlite": {
			file:  sqliteFile,
			fresh: func(t *testing.T) store.Config { return store.Config{Path: filepath.Join(t.TempDir(), "atoll.db")} },
			save: func(t *testing.T, c store.Config) []byte {
				to := filepath.Join(t.TempDir(), "copy.db")
				if err := store.CopySQLite(t.Context(), c.Path, to); err != nil {
					t.Fatal(err)
				}
				return read(t, to)
			},
			load: func(t *testing.T, saved []byte) store.Config {
				path := filepath.Join(t.TempDir(), "atoll.db")
				if err := os.WriteFile(path, saved, 0o600); err != nil {
					t.Fatal(err)
				}
				return store.Config{Path: path}
			},
		},
		"postgres": {
			file: postgresFile,
			fresh: func(t *testing.T) store.Config {
				url, err := server.Database(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return store.Config{URL: url}
			},
			save: func(t *testing.T, c store.Config) []byte {
				cmd := exec.Command("pg_dump", "--inserts", "--no-owner", "--no-privileges", "--dbname="+c.URL)
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				return out
			},
			load: func(t *testing.T, saved []byte) store.Config {
				url, err := server.Database(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				conn, err := pgx.Connect(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(context.Background())
				if _, err := conn.PgConn().Exec(t.Context(), statements(saved)).ReadAll(); err != nil {
					t.Fatal(err)
				}
				return store.Config{URL: url}
			},
		},
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			cfg := engine.fresh(t)
			current := open(t, cfg)
			version, want := current.version(t), schema(t, current.DB)
			if *update {
				if err := fill(t.Context(), current.DB); err != nil {
					t.Fatal(err)
				}
				check(t, current.DB)
				write(t, version, engine.file, engine.save(t, cfg))
			}
			if _, err := os.Stat(fixture(version, engine.file)); err != nil {
				t.Errorf("there is no database of schema %d: run go test ./test/upgrade -update", version)
			}
			for _, v := range versions(t, engine.file) {
				t.Run(strconv.Itoa(v), func(t *testing.T) {
					db := open(t, engine.load(t, unpack(t, fixture(v, engine.file))))
					if got := db.version(t); got != version {
						t.Errorf("its schema has version %d, want %d", got, version)
					}
					if got := schema(t, db.DB); got != want {
						t.Errorf("its schema is not that of a new database; was a migration changed after its version was shipped?\n%s", difference(got, want))
					}
					check(t, db.DB)
					if err := db.jobs.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					use(t, db.DB, db.jobs, db.delivered)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := db.jobs.Stop(ctx); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// statements drops psql's own commands from a dump.
func statements(dump []byte) string {
	var out strings.Builder
	for line := range strings.Lines(string(dump)) {
		if !strings.HasPrefix(line, `\`) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// difference lists the lines that only one of two texts has.
func difference(got, want string) string {
	var out strings.Builder
	for mark, pair := range map[string][2]string{"- ": {want, got}, "+ ": {got, want}} {
		for line := range strings.Lines(pair[0]) {
			if !strings.Contains(pair[1], line) {
				out.WriteString(mark + line)
			}
		}
	}
	return out.String()
}

func fixture(version int, file string) string {
	return filepath.Join("testdata", strconv.Itoa(version), file)
}

// versions are the schemas that testdata has of an engine, for not every version
// changes both; and none is no test.
func versions(t *testing.T, file string) []int {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, e := range entries {
		v, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(fixture(v, file)); err == nil {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		t.Fatal("testdata is empty")
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := z.DecodeAll(read(t, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write adds a fixture, unless it is there.
func write(t *testing.T, version int, file string, data []byte) {
	t.Helper()
	path := fixture(version, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Logf("%s is there already", path)
		return
	}
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(fmt.Errorf("write a fixture: %w", err))
	}
}
