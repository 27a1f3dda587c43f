package upgrade

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/jobs"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// What fill writes and check reads. A later version may add to it; what it
// says of earlier ones stays as it is.
const (
	tenantID = "ten_0000000000000001"
	keyID    = "key_0000000000000001"
	envID    = "env_0000000000000001"
	apiKey   = "sk-atoll-0000000000000000000000000000000000000001"
	secret   = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

var (
	before = time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)
	output = []byte("bytes \x00\xff\xfe and lines\n")
)

func trace(n int) string { return fmt.Sprintf("trc_%032x", n) }

func environment() tenant.Environment {
	return tenant.Environment{
		ID: envID, Tenant: tenantID, Name: "main", Image: "default", CreatedAt: before,
		Limits: runtime.Limits{CPU: 2, Memory: 1 << 30, Processes: 64, OpenFiles: 256, Root: 1 << 20, Tmp: 2 << 20, Shm: 3 << 20, Inodes: 1000},
		Env:    map[string]string{"NAME": "value"}, Secrets: map[string]string{"TOKEN": "a secret"},
	}
}

func run(n int, status execution.Status) *execution.Execution {
	return &execution.Execution{
		TraceID: trace(n), Tenant: tenantID, Key: keyID, Environment: envID, Source: execution.SourceAPI, Delivery: execution.Async,
		Language: execution.Python, Timeout: time.Minute, Metadata: map[string]string{"user": "ü"}, CodeSHA256: [32]byte{1, 2, 3},
		CPU: 2, Memory: 1 << 30, Status: status, CreatedAt: before.Add(time.Duration(n) * time.Minute),
		Webhook: execution.WebhookTarget{URL: "https://example.com/hook", Secret: secret}, WebhookStatus: execution.WebhookPending,
	}
}

// fill writes one of everything.
func fill(ctx context.Context, db *store.DB) error {
	tenants, executions := db.Tenants(), db.Executions()
	daily := int64(7)
	expires := before.AddDate(100, 0, 0)
	steps := []func() error{
		func() error {
			return tenants.PutPlan(ctx, tenant.Plan{Name: "own", MaxCPU: 2, Concurrency: 3, MaxTimeout: time.Minute, Async: true, MaxOutput: 1 << 20})
		},
		func() error {
			return tenants.CreateTenant(ctx, tenant.Tenant{ID: tenantID, Name: "acme", Plan: "own", Tier: tenant.Standard, AuditDays: 30, MonthlyCredits: 100, RedactionOff: []string{"jwt"}, DailyCap: &daily, CreatedAt: before})
		},
		func() error {
			_, err := tenants.ChangeTenant(ctx, tenantID, func(t *tenant.Tenant) ([]tenant.PolicyEvent, error) {
				t.SandboxEnabled = true
				return []tenant.PolicyEvent{{Tenant: tenantID, Actor: "cli", Field: "sandbox_enabled", Old: "false", New: "true", CreatedAt: before}}, nil
			})
			return err
		},
		func() error { return tenants.CreateEnvironment(ctx, environment()) },
		func() error {
			return tenants.CreateKey(ctx, tenant.Key{
				ID: keyID, Tenant: tenantID, Environment: envID, Name: "first", Hash: tenant.HashKey(apiKey), Hint: "0001", Scopes: tenant.DefaultScopes,
				WebhookURL: "https://example.com/hook", WebhookSecret: secret, CreatedAt: before, ExpiresAt: &expires,
			})
		},
		func() error {
			return tenants.PutTemplate(ctx, tenant.Template{Tenant: tenantID, Name: "support", Sandbox: tenant.InternalOnly},
				tenant.PolicyEvent{Tenant: tenantID, Actor: "cli", Field: "template/support", New: "internal-only", CreatedAt: before})
		},
		func() error {
			return tenants.CreateTenant(ctx, tenant.Tenant{ID: "ten_00000000000000ff", Name: tenant.Operator, Plan: "own", Tier: tenant.Standard, AuditDays: 30, CreatedAt: before})
		},
		func() error {
			caps := breaker.Caps{TenantDaily: 11, AgentHourly: 5}
			_, _, err := db.Breakers().ChangeCaps(ctx, keyID, &caps.TenantDaily, &caps.AgentHourly)
			return err
		},
		func() error { // ended, its webhook not delivered yet
			if _, err := executions.Admit(ctx, run(1, execution.Running), execution.Admission{IdempotencyKey: "once"}); err != nil {
				return err
			}
			_, _, err := executions.Conclude(ctx, execution.Result{
				TraceID: trace(1), Status: execution.OOM, ExitCode: 137, Error: "memory limit of 1 GiB exceeded", Stdout: output, StdoutBytes: int64(len(output)),
				LastSeq: 3, CompletedAt: before.Add(2 * time.Minute), PeakMemory: 1 << 30, Start: execution.StartWarm,
			}, func(*execution.Execution) execution.Consequences {
				return execution.Consequences{
					Webhook: true,
					Audit:   audit.Row{Key: keyID, Environment: envID, Source: "execute", Language: "python", ExitStatus: audit.OOM, ExitCode: 137, FailureReason: "memory", Metadata: map[string]string{"user": "ü"}, Retention: 30 * 24 * time.Hour},
					Usage:   usage.Entry{Key: keyID, Source: "execute", Seconds: 60, CPU: 2, Memory: 1 << 30, Sessions: 1, Credits: 1.5, At: before},
				}
			})
			return err
		},
		func() error { // still running
			_, err := executions.Admit(ctx, run(2, execution.Running), execution.Admission{})
			return err
		},
		func() error {
			n, err := audit.NewSealer(db.Audit()).Seal(ctx)
			if err == nil && n != 1 {
				err = fmt.Errorf("%d rows were sealed", n)
			}
			return err
		},
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// check reads what fill wrote.
func check(t *testing.T, db *store.DB) {
	ctx := t.Context()
	tenants, executions := db.Tenants(), db.Executions()

	p, left, err := tenants.Principal(ctx, tenant.HashKey(apiKey))
	if err != nil {
		t.Fatal(err)
	}
	if left <= 0 || p.Tenant.ID != tenantID || !p.Tenant.SandboxEnabled || p.Tenant.MonthlyCredits != 100 || *p.Tenant.DailyCap != 7 || p.Tenant.HourlyCap != nil ||
		!slices.Equal(p.Tenant.RedactionOff, []string{"jwt"}) || p.Plan.Name != "own" || p.Plan.Concurrency != 3 || p.Plan.Streaming || !p.Plan.Async {
		t.Errorf("the caller is %+v", p)
	}
	if p.Key.WebhookSecret != secret || !p.May(tenant.ScopeTools) || p.May(tenant.ScopeAdmin) {
		t.Errorf("the key is %+v", p.Key)
	}
	if e := p.Environment; !reflect.DeepEqual(e.Limits, environment().Limits) || e.Env["NAME"] != "value" || e.Secrets["TOKEN"] != "a secret" {
		t.Errorf("the environment is %+v", e)
	}
	if events, err := tenants.PolicyEvents(ctx, tenantID); err != nil || len(events) != 2 || events[1].Field != "template/support" {
		t.Errorf("policy events: %+v, %v", events, err)
	}
	if x, err := tenants.Template(ctx, tenantID, "support"); err != nil || x.Sandbox != tenant.InternalOnly {
		t.Errorf("template: %+v, %v", x, err)
	}
	if caps, err := db.Breakers().Caps(ctx); err != nil || caps != (breaker.Caps{TenantDaily: 11, AgentHourly: 5}) {
		t.Errorf("caps: %+v, %v", caps, err)
	}

	page, _, err := executions.List(ctx, execution.Filter{Tenant: tenantID, Metadata: map[string]string{"user": "ü"}, Limit: 10})
	if err != nil || len(page) != 2 || page[0].TraceID != trace(2) {
		t.Fatalf("list: %v, %v", page, err)
	}
	got, err := executions.Output(ctx, tenantID, trace(1))
	if err != nil {
		t.Fatal(err)
	}
	want := run(1, execution.OOM)
	want.ExitCode, want.Error, want.Stdout, want.StdoutBytes = 137, "memory limit of 1 GiB exceeded", output, int64(len(output))
	want.LastSeq, want.CompletedAt, want.PeakMemory, want.Start = 3, before.Add(2*time.Minute), 1<<30, execution.StartWarm
	if len(got.Stderr) == 0 {
		got.Stderr = nil // either will do
	}
	got.CreatedAt, got.CompletedAt = got.CreatedAt.UTC(), got.CompletedAt.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the execution is\n%+v, want\n%+v", got, want)
	}
	unfinished, err := executions.Unfinished(ctx, time.Now(), 10)
	if err != nil || len(unfinished) != 1 || unfinished[0].TraceID != trace(2) {
		t.Errorf("unfinished: %v, %v", unfinished, err)
	}
	days, err := db.Usage().Summary(ctx, tenantID, before.AddDate(0, 0, -1), before.AddDate(0, 0, 1))
	if err != nil || len(days) != 1 || days[0].Credits != 1.5 || days[0].CPUSeconds != 120 {
		t.Errorf("usage: %+v, %v", days, err)
	}
	rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: tenantID, Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].ExitStatus != audit.OOM || rows[0].TraceID != trace(1) {
		t.Errorf("audit: %+v, %v", rows, err)
	}
	report, err := audit.NewSealer(db.Audit()).Verify(ctx, tenantID, audit.Mark{})
	if err != nil || len(report.Problems) > 0 || report.Seals != 1 {
		t.Errorf("the seals: %+v, %v", report, err)
	}
}

// use goes on with the database: what ran ends, what is due is done.
func use(t *testing.T, db *store.DB, queue *jobs.Client, delivered <-chan string) {
	ctx := t.Context()
	if _, first, err := db.Executions().Conclude(ctx, execution.Result{TraceID: trace(2), Status: execution.Success, CompletedAt: time.Now()},
		func(*execution.Execution) execution.Consequences {
			return execution.Consequences{Audit: audit.Row{ExitStatus: audit.OK, Retention: 24 * time.Hour}, Webhook: true}
		}); err != nil || !first {
		t.Fatal(first, err)
	}
	queue.Poke()
	var got []string
	for range 2 {
		select {
		case id := <-delivered:
			got = append(got, id)
		case <-time.After(20 * time.Second):
			t.Fatalf("only %v delivered", got)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{trace(1), trace(2)}) {
		t.Errorf("delivered: %v", got)
	}
	if _, err := audit.NewSealer(db.Audit()).Seal(ctx); err != nil {
		t.Error(err)
	}
	if report, err := audit.NewSealer(db.Audit()).Verify(ctx, tenantID, audit.Mark{}); err != nil || len(report.Problems) > 0 || report.Seals != 2 {
		t.Errorf("the seals: %+v, %v", report, err)
	}
}

// schema is everything that a database is made of, as text.
func schema(t *testing.T, db *store.DB) string {
	t.Helper()
	query := `SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1`
	if db.Postgres() {
		query = `
			SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public'
			UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
			UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			ORDER BY 1`
	}
	var out strings.Builder
	if err := each(t.Context(), db.SQL(), query, func(line string) { out.WriteString(line + "\n") }); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func each(ctx context.Context, db *sql.DB, query string, line func(string)) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return err
		}
		line(s)
	}
	return rows.Err()
}
