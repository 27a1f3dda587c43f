package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestOutage stops and starts PostgreSQL under load: every error is one that
// says to try again, nothing that was promised is lost, and the store works
// again by itself.
func TestOutage(t *testing.T) {
	server := atolltest.Postgres(t)
	db := storetest.Postgres(t, database(t, server))
	for _, how := range []struct {
		name string
		stop func() error
	}{{"stopped", server.Stop}, {"killed", server.Kill}} {
		t.Run(how.name, func(t *testing.T) { outage(t, db, server, how.stop) })
	}
}

func outage(t *testing.T, db *store.DB, server *atolltest.PostgresServer, stop func() error) {
	var mu sync.Mutex
	var admitted, ended []string
	failed := 0
	var progress chan struct{} // closed at the next success; guarded by mu
	working, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for working.Err() == nil {
				e := storetest.Execution("outage")
				_, err := db.Executions().Admit(t.Context(), e, execution.Admission{Concurrency: 1000})
				first := false
				if err == nil {
					mu.Lock()
					admitted = append(admitted, e.TraceID)
					mu.Unlock()
					_, first, err = db.Executions().Conclude(t.Context(), storetest.Result(e), follow)
				}
				mu.Lock()
				if first {
					ended = append(ended, e.TraceID)
					if progress != nil {
						close(progress)
						progress = nil
					}
				}
				if err != nil {
					failed++
					if fault.KindOf(err) != fault.Unavailable {
						t.Errorf("kind %d: %v", fault.KindOf(err), err)
					}
				}
				mu.Unlock()
			}
		})
	}
	proceeds := func() {
		t.Helper()
		mu.Lock()
		c := make(chan struct{})
		progress = c
		mu.Unlock()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing proceeds")
		}
	}
	for range 2 {
		proceeds()
		must(t, stop())
		down(t, db)
		must(t, server.Start(t.Context()))
		proceeds()
	}
	cancel()
	wg.Wait()
	t.Logf("%d admitted, %d ended, %d refused meanwhile", len(admitted), len(ended), failed)
	if failed == 0 {
		t.Error("no request was refused during the outage")
	}
	for _, id := range admitted {
		if _, err := db.Executions().Get(t.Context(), "outage", id); err != nil {
			t.Errorf("an admitted execution: %v", err)
		}
	}
	for _, id := range ended {
		e, err := db.Executions().Get(t.Context(), "outage", id)
		must(t, err)
		if e.Status != execution.Success {
			t.Errorf("an ended execution is %s", e.Status)
		}
	}
}

// down asks for something of each kind while there is no server.
func down(t *testing.T, db *store.DB) {
	t.Helper()
	ctx := t.Context()
	for what, ask := range map[string]func() error{
		"ping": func() error { return db.Ping(ctx) },
		"a caller": func() error {
			_, _, err := db.Tenants().Principal(ctx, tenant.HashKey("x"))
			return err
		},
		"a list": func() error {
			_, _, err := db.Executions().List(ctx, execution.Filter{Tenant: "a", Limit: 1})
			return err
		},
		"a breaker": func() error {
			b, err := db.Breakers().Count(ctx, "a", "b", breaker.DefaultCaps())
			if b == nil && err == nil {
				err = errors.New("it let a call through")
			}
			return err
		},
		"caps": func() error {
			_, err := db.Breakers().Caps(ctx)
			return err
		},
		"a seal": func() error { return sealAll(ctx, db, "a") },
	} {
		start := time.Now()
		if err := ask(); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: kind %d: %v", what, fault.KindOf(err), err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: it took %v to say so", what, took)
		}
	}
}
