package store_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// callers is how many ask at the same time.
const callers = 64

// BenchmarkRecord measures what recording costs: alone, one at a time, and
// with many callers.
func BenchmarkRecord(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchRecord(b, storetest.SQLite) })
	b.Run("postgres", func(b *testing.B) {
		server := atolltest.Postgres(b, atolltest.Durable)
		benchRecord(b, func(t testing.TB, change ...func(*store.Config)) *store.DB {
			return storetest.Postgres(t, database(t, server), change...)
		})
	})
}

func benchRecord(b *testing.B, open opener) {
	for _, plan := range []string{"unlimited", "limited"} {
		a := execution.Admission{}
		if plan == "limited" {
			a = execution.Admission{Concurrency: 1 << 20, Credits: 1e12}
		}
		for _, kind := range []string{"admit", "conclude", "pair"} {
			b.Run(fmt.Sprintf("%s/%s/alone", plan, kind), func(b *testing.B) { recording(b, open(b), a, kind, 1) })
			b.Run(fmt.Sprintf("%s/%s/callers=%d", plan, kind, callers), func(b *testing.B) { recording(b, open(b), a, kind, callers) })
		}
	}
}

func recording(b *testing.B, db *store.DB, a execution.Admission, kind string, callers int) {
	t := benchTenant(b, db)
	s := db.Executions()
	all := make(chan *execution.Execution, b.N)
	for range b.N {
		e := storetest.Execution(t.ID)
		if kind == "conclude" {
			if _, err := s.Admit(b.Context(), e, execution.Admission{}); err != nil {
				b.Fatal(err)
			}
		}
		all <- e
	}
	close(all)
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	took := make([]time.Duration, b.N)
	var done atomic.Int64
	b.ResetTimer()
	work := func(e *execution.Execution) {
		start := time.Now()
		defer func() { took[done.Add(1)-1] = time.Since(start) }()
		if kind != "conclude" {
			if _, err := s.Admit(b.Context(), e, a); err != nil {
				b.Error(err)
			}
		}
		if kind != "admit" {
			if _, first, err := s.Conclude(b.Context(), storetest.Result(e), follow); err != nil || !first {
				b.Error(first, err)
			}
		}
	}
	if callers == 1 {
		for e := range all {
			work(e)
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				work(<-all)
			}
		})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
}

func follow(e *execution.Execution) execution.Consequences {
	return execution.Consequences{
		Audit: audit.Row{Key: e.Key, Environment: e.Environment, Source: string(e.Source), Language: string(e.Language), CodeSHA256: e.CodeSHA256, ExitStatus: audit.OK, Metadata: e.Metadata},
		Usage: usage.Entry{Key: e.Key, Source: string(e.Source), Seconds: 0.01, CPU: e.CPU, Memory: e.Memory, Sessions: 1, Credits: 0.001},
	}
}

func benchTenant(b *testing.B, db *store.DB) tenant.Tenant {
	b.Helper()
	t := tenant.Tenant{ID: tenant.NewID("ten"), Name: "bench", Plan: "enterprise", Tier: tenant.Standard, AuditDays: 30}
	if err := db.Tenants().CreateTenant(b.Context(), t); err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkList measures pages of a tenant with a million executions, among
// those of others.
func BenchmarkList(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchList(b, storetest.SQLite) })
	b.Run("postgres", func(b *testing.B) {
		server := atolltest.Postgres(b, atolltest.Durable)
		benchList(b, func(t testing.TB, change ...func(*store.Config)) *store.DB {
			return storetest.Postgres(t, database(t, server), change...)
		})
	})
}

func benchList(b *testing.B, open opener) {
	const rows = 1_000_000
	db := open(b)
	start := time.Now()
	for tenant, n := range map[string]int{"ten_bench": rows, "ten_other": rows / 20} {
		if err := storetest.Fill(b.Context(), db, tenant, n); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("filled in %v", time.Since(start))
	begin := time.Now().Add(-rows * time.Second)
	for name, f := range map[string]execution.Filter{
		"all":                   {},
		"metadata/most":         {Metadata: map[string]string{"env": "prod"}},
		"metadata/some":         {Metadata: map[string]string{"user": "user-17"}},
		"metadata/one":          {Metadata: map[string]string{"run": "run-12345"}},
		"metadata/none":         {Metadata: map[string]string{"run": "none"}},
		"metadata/two":          {Metadata: map[string]string{"env": "prod", "user": "user-18"}},
		"metadata/two-usual":    {Metadata: map[string]string{"env": "prod", "team": "red"}},
		"metadata/two-far":      {Metadata: map[string]string{"env": "prod", "team": "blue"}},
		"metadata/and-oom":      {Metadata: map[string]string{"env": "prod"}, Status: execution.OOM},
		"metadata/and-success":  {Metadata: map[string]string{"env": "prod"}, Status: execution.Success},
		"metadata/and-time":     {Metadata: map[string]string{"env": "prod"}, Before: begin.Add(rows / 2 * time.Second)},
		"status/success":        {Status: execution.Success},
		"status/failed":         {Status: execution.Failed},
		"status/oom":            {Status: execution.OOM},
		"status/running":        {Status: execution.Running},
		"status/cancelled":      {Status: execution.Cancelled},
		"language/node":         {Language: execution.Node},
		"language/bash":         {Language: execution.Bash},
		"key/usual":             {Key: "key_7"},
		"key/once":              {Key: "key_49"},
		"key/and-oom":           {Key: "key_7", Status: execution.OOM},
		"time/old":              {Before: begin.Add(1000 * time.Second)},
		"time/old-and-metadata": {Before: begin.Add(1000 * time.Second), Metadata: map[string]string{"env": "prod"}},
	} {
		b.Run(name, func(b *testing.B) { listing(b, db, f) })
	}
	b.Run("pages", func(b *testing.B) { // far into the list
		f := execution.Filter{Tenant: "ten_bench", Limit: 100}
		for b.Loop() {
			_, next, err := db.Executions().List(b.Context(), f)
			if err != nil {
				b.Fatal(err)
			}
			f.Cursor = next
		}
	})
}

func listing(b *testing.B, db *store.DB, f execution.Filter) {
	f.Tenant, f.Limit = "ten_bench", 50
	var worst time.Duration
	var n int
	for b.Loop() {
		start := time.Now()
		page, _, err := db.Executions().List(b.Context(), f)
		if err != nil {
			b.Fatal(err)
		}
		n, worst = len(page), max(worst, time.Since(start))
	}
	b.ReportMetric(float64(n), "rows")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// BenchmarkCall measures what it costs to record a call of a tool.
func BenchmarkCall(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchCall(b, storetest.SQLite) })
	b.Run("postgres", func(b *testing.B) {
		server := atolltest.Postgres(b, atolltest.Durable)
		benchCall(b, func(t testing.TB, change ...func(*store.Config)) *store.DB {
			return storetest.Postgres(t, database(t, server), change...)
		})
	})
}

func benchCall(b *testing.B, open opener) {
	for _, callers := range []int{1, callers} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := open(b)
			t := benchTenant(b, db)
			s := db.Sandboxes()
			b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			took := make([]time.Duration, b.N)
			var done atomic.Int64
			call := func() {
				start := time.Now()
				id := execution.NewTraceID()
				row := audit.Row{TraceID: id, Tenant: t.ID, Key: "key_1", Environment: "env_1", Source: "shell", SessionID: "s", ExitStatus: audit.OK, DurationMS: 3}
				if err := s.Record(b.Context(), row, usage.Entry{TraceID: id, Tenant: t.ID, Key: "key_1", Source: "shell", At: start, Seconds: 0.001, Credits: 0.001}); err != nil {
					b.Error(err)
				}
				took[done.Add(1)-1] = time.Since(start)
			}
			b.ResetTimer()
			if callers == 1 {
				for range b.N {
					call()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						call()
					}
				})
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[b.N/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
		})
	}
}
