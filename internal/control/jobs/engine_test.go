package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/test/atolltest"
)

// postgres is the real server that the tests of this package share.
var postgres *atolltest.PostgresServer

func TestMain(m *testing.M) {
	if where := os.Getenv(childDatabase); where != "" {
		child(where, os.Getenv(childHook))
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if postgres, err = atolltest.LaunchPostgres(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer postgres.Close()
	before := goleak.IgnoreCurrent()
	code := m.Run()
	if err := goleak.Find(before); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// engine is a database with the product's records.
type engine struct {
	where  string // path or URL
	db     *store.DB
	client atomic.Pointer[Client] // who stores jobs
}

// engines runs a test on both.
func engines(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Run("sqlite", func(t *testing.T) { test(t, prepare(t, filepath.Join(t.TempDir(), "atoll.db"))) })
	t.Run("postgres", func(t *testing.T) {
		url, err := postgres.Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		test(t, prepare(t, url))
	})
}

func prepare(t *testing.T, where string) *engine {
	t.Helper()
	e, err := open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func open(ctx context.Context, where string) (*engine, error) {
	e := &engine{where: where}
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		return nil, err
	}
	cfg := store.Config{Path: where, Seal: box, Enqueue: e.enqueue}
	if strings.HasPrefix(where, "postgres:") {
		cfg.Path, cfg.URL = "", where
	}
	e.db, err = store.Open(ctx, cfg)
	return e, err
}

func (e *engine) enqueue(ctx context.Context, tx *sql.Tx, x *execution.Execution) error {
	return e.client.Load().Enqueue(ctx, tx, x)
}

// conclude takes an execution through its life, with a webhook at its end.
func (e *engine) conclude(ctx context.Context, c *Client, traceID, url string) error {
	return e.concludeOf(ctx, c, tenant, traceID, url)
}

func (e *engine) concludeOf(ctx context.Context, c *Client, tenant, traceID, url string) error {
	e.client.Store(c)
	x := &execution.Execution{
		TraceID: traceID, Tenant: tenant, Key: "key_1", Environment: "env_1", Source: execution.SourceAPI, Delivery: execution.Async,
		Language: execution.Bash, Timeout: time.Minute, Status: execution.Running, CreatedAt: time.Now(),
		Webhook: execution.WebhookTarget{URL: url, Secret: "a secret"}, WebhookStatus: execution.WebhookPending,
	}
	if _, err := e.db.Executions().Admit(ctx, x, execution.Admission{}); err != nil {
		return err
	}
	_, first, err := e.db.Executions().Conclude(ctx, execution.Result{TraceID: traceID, Status: execution.Success, Stdout: []byte("done\n"), StdoutBytes: 5, CompletedAt: time.Now()},
		func(*execution.Execution) execution.Consequences {
			return execution.Consequences{Webhook: true, Audit: audit.Row{ExitStatus: audit.OK}}
		})
	if err == nil && !first {
		err = errors.New("concluded before")
	}
	c.Poke()
	return err
}

// tenant has the executions that name no other.
const tenant = "ten_1"

func (e *engine) get(t *testing.T, traceID string) *execution.Execution {
	t.Helper()
	x, err := e.db.Executions().Get(context.Background(), tenant, traceID)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (e *engine) status(t *testing.T, traceID string) execution.WebhookStatus {
	t.Helper()
	return e.get(t, traceID).WebhookStatus
}

// start starts a Client; retries wait for milliseconds.
func (e *engine) start(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(e.config(cfg))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (e *engine) config(cfg Config) Config {
	cfg.DB, cfg.Postgres, cfg.Executions = e.db.SQL(), e.db.Postgres(), e.db.Executions()
	if cfg.ID == "" {
		cfg.ID = "gateway-1"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Retries == nil {
		cfg.Retries = []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond}
	}
	return cfg
}
