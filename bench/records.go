package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/test/atolltest"
)

const (
	admissionClients = 64
	manyRecords      = 1_000_000
)

// records measures a gateway whose executor does nothing, and lists of many
// executions, on both databases.
func records(ctx context.Context, b *bench) (rows []report.Row, err error) {
	dir, err := b.rig.Temp("records")
	if err != nil {
		return nil, err
	}
	pg, err := atolltest.LaunchPostgres(ctx, atolltest.Durable)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pg.Close()) }()
	row, err := redaction(b)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row)
	for _, engine := range []struct{ name, url string }{{"SQLite", ""}, {"PostgreSQL", pg.URL}} {
		got, err := recordsOn(ctx, b, engine.name, engine.url, filepath.Join(dir, engine.name))
		rows = append(rows, got...)
		if err != nil {
			rows = append(rows, report.Row{Case: "records on " + engine.name, Err: err.Error()})
		}
	}
	return rows, nil
}

func recordsOn(ctx context.Context, b *bench, name, url, dir string) (_ []report.Row, err error) {
	var key [seal.KeySize]byte
	rand.Read(key[:])
	box, err := seal.New(key[:])
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, store.Config{URL: url, Path: filepath.Join(dir, "atoll.db"), Seal: box})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	caller, err := principal(ctx, db)
	if err != nil {
		return nil, err
	}
	g, done, err := idleGateway(ctx, db, dir)
	if err != nil {
		return nil, err
	}
	call := func(ctx context.Context) error {
		_, err := g.Execute(ctx, caller, execution.Request{
			TraceID: execution.NewTraceID(), Code: "pass", Language: execution.Python, Timeout: time.Minute,
		}, gateway.Call{Source: execution.SourceAPI, Delivery: execution.Inline})
		return err
	}
	alone, err := closedLoop(ctx, 1, time.Second, b.window(5*time.Second), call)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	admitted, err := closedLoop(ctx, admissionClients, time.Second, b.window(10*time.Second), call)
	if err := errors.Join(err, done()); err != nil {
		return nil, err
	}
	rows := []report.Row{{
		Case: "what recording, bus and audit add to an execution, " + name + ", p50", Unit: "ms",
		Measured: report.Milliseconds(alone.each.Percentile(50)), Sample: alone.each.Summary(), Must: onSQLite(name, report.AtMost(1)),
		Note: "no-op executions through the gateway, one at a time; redaction has a row of its own",
	}, {
		Case: "no-op executions through the gateway, recorded, " + name, Unit: "executions/s",
		Measured: admitted.perSecond(), Sample: admitted.each.Summary(), Must: report.AtLeast(1500),
		Note: fmt.Sprintf("%d at the same time: admitted, sent over the bus, ended, with audit row and usage", admissionClients),
	}}
	n := b.count(manyRecords)
	if err := fill(ctx, db, caller.Tenant.ID, n); err != nil {
		return rows, fmt.Errorf("make %d records: %w", n, err)
	}
	for _, c := range []struct {
		name   string
		filter execution.Filter
	}{
		{"first page", execution.Filter{}},
		{"first page with a metadata filter", execution.Filter{Metadata: map[string]string{fillKey: "7"}}},
	} {
		c.filter.Tenant, c.filter.Limit = caller.Tenant.ID, 100
		var each report.Sample
		for range b.count(50) {
			began := time.Now()
			page, _, err := db.Executions().List(ctx, c.filter)
			each = append(each, time.Since(began))
			if err != nil || len(page) == 0 {
				return rows, fmt.Errorf("%s: %d records, %w", c.name, len(page), err)
			}
		}
		rows = append(rows, report.Row{
			Case: fmt.Sprintf("%s of %d executions, %s, p50", c.name, n, name), Unit: "ms",
			Measured: report.Milliseconds(each.Percentile(50)), Sample: each.Summary(), Must: report.AtMost(20),
		})
	}
	return rows, nil
}

// onSQLite is a bound that is promised for SQLite alone.
func onSQLite(name string, b *report.Bound) *report.Bound {
	if name == "SQLite" {
		return b
	}
	return nil
}

// redaction measures what covering a small output costs, every rule on and a
// few secrets registered.
func redaction(b *bench) (report.Row, error) {
	rules, err := redact.Except(nil)
	if err != nil {
		return report.Row{}, err
	}
	set, err := redact.New(redact.Config{Secrets: []string{"correct horse battery", "staple-0123456789"}, Rules: rules})
	if err != nil {
		return report.Row{}, err
	}
	line := []byte("2026-11-21 10:00:00 INFO an ordinary line of output, as long as most of them are\n")
	var each report.Sample
	for range b.count(10_000) {
		began := time.Now()
		out := set.Stream(func([]byte) {})
		for range 50 {
			out.Write(line)
		}
		out.Flush()
		each = append(each, time.Since(began))
	}
	return report.Row{
		Case: "redaction of 50 lines, p50", Unit: "ms", Measured: report.Milliseconds(each.Percentile(50)), Sample: each.Summary(),
		Must: report.AtMost(0.25), Note: "0.25 ms is 5 % of a warm print(1) of 5 ms, which has one line",
	}, nil
}

// principal is a caller without bounds.
func principal(ctx context.Context, db *store.DB) (*tenant.Principal, error) {
	key := tenant.NewKey()
	err := tenant.Setup{Store: db.Tenants(), DevKey: key, Environment: tenant.Environment{Image: "default", Limits: runtime.DefaultLimits()}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	p, _, err := db.Tenants().Principal(ctx, tenant.HashKey(key))
	return &p, err
}

// idle is an executor whose programs have ended before they began.
type idle struct {
	log  *bus.Log
	seat *bus.Executor
}

// Start implements bus.Handler.
func (x *idle) Start(ctx context.Context, job execution.Job) error {
	go func() {
		now := time.Now().UTC()
		_ = x.log.Finish(context.WithoutCancel(ctx), execution.Result{
			TraceID: job.TraceID, Status: execution.Success, LastSeq: 1, StartedAt: now, CompletedAt: now,
		}) // the waiter for the result would tell
		x.seat.Release(job.TraceID)
	}()
	return nil
}

// Cancel implements bus.Handler.
func (x *idle) Cancel(context.Context, string) error { return nil }

// idleGateway returns a gateway over a real bus and an idle executor.
func idleGateway(ctx context.Context, db *store.DB, dir string) (_ *gateway.Gateway, done func() error, err error) {
	b, err := bus.Open(ctx, bus.Config{Dir: filepath.Join(dir, "nats"), Name: "bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	x := &idle{log: b.Log()}
	if x.seat, err = b.Serve("bench", x); err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	blobs, err := blob.Open(ctx, "file://"+filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	rules, err := redact.Except(nil)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	g, err := gateway.New(gateway.Config{
		Store: db.Executions(), Runner: b.Runner(), Log: b.Log(), Outputs: blobs, Trail: db.Audit(),
		Await:  func(traceID string) gateway.Waiter { return b.Await(traceID) },
		Prices: usage.DefaultPrices(), Rules: rules, MaxTimeout: time.Hour, MaxOutput: 10 << 20, Keep: 30 * 24 * time.Hour,
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	results, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.Results(results, g.Conclude) }()
	return g, func() error {
		stop()
		err := <-ended
		if errors.Is(err, context.Canceled) {
			err = nil // it was stopped
		}
		x.seat.Close()
		return errors.Join(err, blobs.Close(), b.Close())
	}, nil
}

// EndTurn implements bus.Handler.
func (x *idle) EndTurn(string) {}
