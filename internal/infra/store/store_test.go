package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/agent/agenttest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/audit/audittest"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/breaker/breakertest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/execution/executiontest"
	"github.com/atoll-run/atoll/internal/core/model/modeltest"
	"github.com/atoll-run/atoll/internal/core/preview/previewtest"
	"github.com/atoll-run/atoll/internal/core/requirement/requirementtest"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/run/runtest"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/session/sessiontest"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/tenant/tenanttest"
	"github.com/atoll-run/atoll/internal/core/thread/threadtest"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/upload/uploadtest"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/usage/usagetest"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/vault/vaulttest"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// opener makes a fresh database of one engine.
type opener func(t testing.TB, change ...func(*store.Config)) *store.DB

func TestSQLite(t *testing.T) {
	suites(t, storetest.SQLite)
	t.Run("closing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "atoll.db")
		testClose(t, func(t testing.TB) (*store.DB, func() *store.DB) {
			return openFile(t, path), func() *store.DB { return openFile(t, path) }
		})
	})
}

func TestPostgres(t *testing.T) {
	server := store.Shared.Get(t)
	suites(t, postgres(t, server))
	t.Run("closing", func(t *testing.T) {
		url := database(t, server)
		open := func() *store.DB {
			db, err := store.Open(t.Context(), store.Config{URL: url, Seal: storetest.Box(t)})
			must(t, err)
			return db
		}
		testClose(t, func(testing.TB) (*store.DB, func() *store.DB) { return open(), open })
	})
	t.Run("another clock", func(t *testing.T) { testClock(t, postgres(t, server)) })
	t.Run("two gateways", func(t *testing.T) {
		url := database(t, server)
		testTwo(t, storetest.Postgres(t, url), storetest.Postgres(t, url))
	})
	t.Run("two gateways and one thread", func(t *testing.T) {
		url := database(t, server)
		opened := func() threadtest.Opened {
			db := storetest.Postgres(t, url)
			return threadtest.Opened{Records: db.Threads(), Executions: db.Executions()}
		}
		threadtest.Counting(t, opened(), opened())
	})
}

// postgres makes databases of a server. All are copies of one that is up to
// date.
func postgres(t *testing.T, server *atolltest.PostgresServer) opener {
	empty := database(t, server)
	db, err := store.Open(t.Context(), store.Config{URL: empty, Seal: storetest.Box(t)})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB, change ...func(*store.Config)) *store.DB {
		t.Helper()
		url, err := server.Clone(t.Context(), empty)
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Postgres(t, url, change...)
	}
}

func database(t testing.TB, server *atolltest.PostgresServer) string {
	t.Helper()
	url, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// suites runs the contracts' suites, and what only a store in SQL can be asked.
func suites(t *testing.T, open opener) {
	t.Run("tenants", func(t *testing.T) {
		tenanttest.Store(t, func(t *testing.T) tenant.Store { return open(t).Tenants() })
	})
	t.Run("installation", func(t *testing.T) { testInstallation(t, open) })
	t.Run("packages", func(t *testing.T) {
		db := open(t)
		requirementtest.Store(t, db.PackageBuilds(), db.Tenants())
	})
	t.Run("runs", func(t *testing.T) {
		runtest.Store(t, func(t *testing.T) runtest.Opened {
			db := open(t)
			return runtest.Opened{Store: db.Runs(), Usage: db.Usage(), Age: func(t *testing.T, by time.Duration) {
				_, err := db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE runs SET due_at = due_at - %[1]d, expires_at = expires_at - %[1]d`, by.Microseconds()))
				must(t, err)
			}}
		})
	})
	t.Run("agents", func(t *testing.T) {
		agenttest.Store(t, func(t *testing.T) agent.Store { return open(t).Agents() })
	})
	t.Run("skills", func(t *testing.T) {
		skilltest.Store(t, func(t *testing.T) skill.Store { return open(t).Skills() })
	})
	t.Run("vaults", func(t *testing.T) {
		vaulttest.Store(t, func(t *testing.T) vault.Store { return open(t).Vaults() })
	})
	t.Run("files", func(t *testing.T) {
		uploadtest.Store(t, func(t *testing.T) upload.Store { return open(t).Files() })
	})
	t.Run("sessions", func(t *testing.T) {
		sessiontest.Store(t, func(t *testing.T) (session.Store, run.Store) { db := open(t); return db.Sessions(), db.Runs() })
	})
	t.Run("sandboxes of sessions", func(t *testing.T) {
		db := open(t)
		sessiontest.Sandboxes(t, db.Sessions(), db.Sandboxes())
	})
	t.Run("what sessions tell", func(t *testing.T) {
		var db *store.DB
		var told []session.Notice
		db = open(t, func(c *store.Config) {
			c.Tell = func(_ context.Context, _ *sql.Tx, of tenant.ID, id string, sealed []byte) error {
				n, err := db.OpenNotice(of, id, sealed)
				told = append(told, *n)
				return err
			}
		})
		sessiontest.Notices(t, db.Sessions(), db.Runs(), func() []session.Notice { return told })
	})
	t.Run("idempotent requests", func(t *testing.T) { testIdempotency(t, open) })
	t.Run("bounds of tokens", func(t *testing.T) { testTokenBounds(t, open) })
	t.Run("approvals", func(t *testing.T) { testApprovals(t, open) })
	t.Run("activity", func(t *testing.T) { testActivity(t, open) })
	t.Run("executions of runs", func(t *testing.T) { testRunExecutions(t, open) })
	t.Run("executions", func(t *testing.T) {
		executiontest.Store(t, func(t *testing.T) executiontest.Opened {
			db := open(t)
			return executiontest.Opened{Store: db.Executions(), Audit: db.Audit(), Usage: db.Usage(), AgeKeys: func(t *testing.T, by time.Duration) (n int) {
				_, err := db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE idempotency_keys SET created_at = created_at - %d`, by.Microseconds()))
				must(t, err)
				must(t, db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&n))
				return n
			}}
		})
	})
	t.Run("threads", func(t *testing.T) {
		threadtest.Records(t, func(t *testing.T) threadtest.Opened {
			db := open(t)
			return threadtest.Opened{Records: db.Threads(), Executions: db.Executions(), Age: func(t *testing.T, by time.Duration) { ageThreads(t, db, by) }}
		})
	})
	t.Run("sandboxes", func(t *testing.T) {
		sandboxtest.Store(t, func(t *testing.T) sandboxtest.Opened {
			db := open(t)
			storetest.Operator(t, db)
			create := func(t *testing.T, tenantID string, credits float64) {
				must(t, db.Tenants().CreateTenant(t.Context(), tenant.Tenant{ID: tenantID, Name: tenantID, Plan: "free", Tier: tenant.Standard, AuditDays: 30, MonthlyCredits: credits, CreatedAt: time.Now()}))
			}
			keys := func(t *testing.T, tenantID, environment string) (ids []string) {
				create(t, tenantID, 0)
				must(t, db.Tenants().CreateEnvironment(t.Context(), tenant.Environment{ID: environment, Tenant: tenantID, Name: environment, Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
				for range 3 {
					k := tenant.Key{ID: tenant.NewID("key"), Tenant: tenantID, Environment: environment, Scopes: []tenant.Scope{tenant.ScopeSandboxes}, CreatedAt: time.Now()}
					k.Name, k.Hash = k.ID, tenant.HashKey(k.ID)
					must(t, db.Tenants().CreateKey(t.Context(), k))
					ids = append(ids, k.ID)
				}
				must(t, db.Tenants().RevokeKey(t.Context(), tenantID, ids[2]))
				return ids
			}
			return sandboxtest.Opened{Store: db.Sandboxes(), Snapshots: db.Snapshots(), Audit: db.Audit(), Usage: db.Usage(), Tenant: create, Keys: keys, Delete: func(t *testing.T, tenantID, environment string) {
				create(t, tenantID, 0)
				must(t, db.Tenants().CreateEnvironment(t.Context(), tenant.Environment{ID: environment, Tenant: tenantID, Name: environment, Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
				must(t, db.Tenants().DeleteEnvironment(t.Context(), tenantID, environment))
			}, Age: func(t *testing.T, by time.Duration) {
				for column, table := range map[string]string{"ended_at": "sandboxes", "expires_at": "snapshots", "last": "snapshot_litter"} {
					_, err := db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s = %s - %d`, table, column, column, by.Microseconds()))
					must(t, err)
				}
			}}
		})
	})
	t.Run("previews", func(t *testing.T) {
		previewtest.Store(t, func(t *testing.T) previewtest.Opened {
			db := open(t)
			storetest.Operator(t, db)
			return previewtest.Opened{Store: db.Previews(), Sandbox: func(t *testing.T) runtime.ID {
				sb := &sandbox.Sandbox{ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: "s", Image: "default", State: sandbox.Running}
				sb.Name = string(sb.ID)[3:]
				_, err := db.Sandboxes().Create(t.Context(), sb, sandbox.Quota{})
				must(t, err)
				return sb.ID
			}}
		})
	})
	t.Run("audit", func(t *testing.T) {
		audittest.Store(t, func(t *testing.T) audittest.Opened {
			db := open(t)
			return audittest.Opened{Store: db.Audit(), Age: func(t *testing.T, by time.Duration) { storetest.AgeAudit(t, db, by) }}
		})
	})
	t.Run("usage", func(t *testing.T) { usagetest.Store(t, func(t *testing.T) usagetest.Opened { return ledger(open(t)) }) })
	t.Run("breakers", func(t *testing.T) {
		breakertest.Store(t, func(t *testing.T) breaker.Store {
			db := open(t)
			storetest.Operator(t, db)
			return db.Breakers()
		})
	})
	t.Run("models", func(t *testing.T) {
		modeltest.Store(t, func(t *testing.T) modeltest.Opened {
			db := open(t)
			other := tenanttest.Tenant(t, db.Tenants(), "other")
			_, err := db.Tenants().ChangeTenant(t.Context(), other.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
				v.Plan = "free" // the operator's is another
				return nil, nil
			})
			must(t, err)
			return modeltest.Opened{Store: db.Models(), Tenants: db.Tenants(), Events: db.Tenants().PolicyEvents, Operator: storetest.Operator(t, db), Other: other.ID}
		})
	})
	for name, test := range map[string]func(*testing.T, opener){
		"protected": testProtected, "forgery": testForgery, "sealing switched off": testSealingSwitchedOff, "a late row": testLateRow, "retention": testRetention,
		"sealed": testSealed, "enqueue": testEnqueue, "panic": testPanic,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func ageThreads(t *testing.T, db *store.DB, by time.Duration) {
	t.Helper()
	for column, table := range map[string]string{"created_at": "threads", "updated_at": "threads", "expires_at": "threads", "lease_until": "threads", "last": "thread_litter"} {
		_, err := db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s = %s - %d`, table, column, column, by.Microseconds()))
		must(t, err)
	}
}

// ledger records use the way the product does.
func ledger(db *store.DB) usagetest.Opened {
	return usagetest.Opened{Store: db.Usage(), Budget: func(ctx context.Context, id string, dollars float64) error {
		return db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: id, Name: id, Plan: "free", Tier: tenant.Standard, AuditDays: 1, MonthlyCost: dollars, CreatedAt: time.Now()})
	}, Charge: func(ctx context.Context, id string, c ...usage.Charge) error {
		r := &run.Run{ID: run.NewID(), Tenant: id, Status: run.InProgress, CreatedAt: time.Now()}
		lease, err := db.Runs().Create(ctx, r, []run.Entry{{Seq: 1, At: time.Now(), Begun: &run.Request{Models: []string{"m"}}}}, "test", 0, nil)
		if err != nil {
			return err
		}
		for i := range c {
			c[i].Tenant = id
		}
		return db.Runs().Append(ctx, r.ID, lease, []run.Entry{{Seq: 2, At: time.Now(), Asked: &run.Asked{Step: 1, Try: 1, Model: "m"}}}, run.Trace{Charges: c})
	}, Record: func(ctx context.Context, u usage.Entry) error {
		if u.TraceID != "" { // of a call that a program made
			return db.Sandboxes().Record(ctx, audit.Row{TraceID: u.TraceID, Tenant: u.Tenant, Source: u.Source, ExitStatus: audit.OK}, u)
		}
		e := &execution.Execution{TraceID: execution.NewTraceID(), Tenant: u.Tenant}
		if _, err := db.Executions().Admit(ctx, e, execution.Admission{}); err != nil {
			return err
		}
		_, _, err := db.Executions().Conclude(ctx, execution.Result{TraceID: e.TraceID, Status: execution.Success},
			func(*execution.Execution) execution.Consequences {
				return execution.Consequences{Audit: audit.Row{ExitStatus: audit.OK}, Usage: u}
			})
		return err
	}}
}
