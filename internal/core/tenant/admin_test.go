package tenant_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// world is an Admin over a real database.
type world struct {
	*tenant.Admin
	t         *testing.T
	db        *store.DB
	authority *tenant.Authority
}

func open(t *testing.T) *world {
	t.Helper()
	db := storetest.SQLite(t)
	hooks, err := webhook.New(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	authority := tenant.NewAuthority(db.Tenants())
	w := &world{t: t, db: db, authority: authority, Admin: tenant.NewAdmin(tenant.AdminConfig{
		Store: db.Tenants(), Authority: authority, Limits: runtime.DefaultLimits(),
		CheckImage: func(_ context.Context, name string) error {
			if name != "default" && name != "tools" {
				return fault.New(fault.Invalid, "there is no image %q", name)
			}
			return nil
		},
		CheckWebhook: hooks.CheckURL, CheckSecret: webhook.CheckSecret,
		Reach: func(context.Context, *storage.Connection) error { return nil },
	})}
	w.must(setup(db, "").Run(t.Context()))
	return w
}

func setup(db *store.DB, devKey string) tenant.Setup {
	return tenant.Setup{Store: db.Tenants(), DevKey: devKey, Environment: tenant.Environment{
		Image: "default", Limits: runtime.DefaultLimits(), Env: map[string]string{"A": "1"},
	}}
}

// begin is what a first start does.
func begin(ctx context.Context, s tenant.Setup) (adminKey string, err error) {
	if err := s.Run(ctx); err != nil {
		return "", err
	}
	return s.AdminKey(ctx, nil)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tenant(name string, c tenant.TenantChange) tenant.Tenant {
	w.t.Helper()
	t, err := w.CreateTenant(w.t.Context(), "key_1", name, c)
	w.must(err)
	return t
}

func (w *world) environment(in, name string) tenant.Environment {
	w.t.Helper()
	e, err := w.CreateEnvironment(w.t.Context(), "", in, name, tenant.EnvironmentChange{})
	w.must(err)
	return e
}

// refused checks a failure's kind and that its message names what is wrong.
func refused(t *testing.T, err error, kind fault.Kind, says string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want kind %d that says %q", err, kind, says)
	}
}

func ptr[T any](v T) *T { return &v }

var badNames = []string{"", "-a", ".a", "a b", "a/b", "a\x00", "a\n", "é", strings.Repeat("a", 65), "ten_0123456789abcdef", "key_0123456789abcdef", "env_0123456789abcdef"}

func TestNames(t *testing.T) {
	w := open(t)
	w.tenant("acme", tenant.TenantChange{})
	e := w.environment("acme", "e")
	ctx := t.Context()
	for _, name := range badNames {
		_, err := w.CreateTenant(ctx, "key_1", name, tenant.TenantChange{})
		refused(t, err, fault.Invalid, "tenant name")
		_, err = w.CreateEnvironment(ctx, "", "acme", name, tenant.EnvironmentChange{})
		refused(t, err, fault.Invalid, "environment name")
		_, err = w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Name: &name})
		refused(t, err, fault.Invalid, "environment name")
		_, _, err = w.CreateKey(ctx, "", "acme", e.ID, name, tenant.KeyChange{})
		refused(t, err, fault.Invalid, "key name")
		_, err = w.PutPlan(ctx, "key_1", tenant.Plan{Name: name, MaxOutput: 1 << 20})
		refused(t, err, fault.Invalid, "plan name")
		_, err = w.PutTemplate(ctx, "key_1", "acme", name, tenant.InternalOnly)
		refused(t, err, fault.Invalid, "template name")
	}
	for _, name := range []string{"a", "A.b_c-9", strings.Repeat("a", 64), "ten_0123456789abcdeg", "ten_0123"} {
		w.tenant(name, tenant.TenantChange{})
	}
	_, err := w.CreateTenant(ctx, "key_1", "acme", tenant.TenantChange{})
	refused(t, err, fault.Conflict, "")
	_, err = w.CreateEnvironment(ctx, "", "acme", "e", tenant.EnvironmentChange{})
	refused(t, err, fault.Conflict, "")
}

func TestTenantBounds(t *testing.T) {
	w := open(t)
	made := w.tenant("acme", tenant.TenantChange{})
	if made.Plan != "free" || made.Tier != tenant.Standard || !made.SandboxEnabled || made.AuditDays != 30 || made.MonthlyCredits != 0 {
		t.Errorf("a new tenant is %+v", made)
	}
	for _, c := range []struct {
		name   string
		change tenant.TenantChange
		says   string
	}{
		{"plan", tenant.TenantChange{Plan: ptr("gold")}, "plan"},
		{"no plan", tenant.TenantChange{Plan: ptr("")}, "plan"},
		{"a plan's name with NUL", tenant.TenantChange{Plan: ptr("a\x00")}, "plan"},
		{"tier", tenant.TenantChange{Tier: ptr(tenant.Tier("hipaa"))}, "tier must be one of standard, regulated"},
		{"budget below 0", tenant.TenantChange{MonthlyCredits: ptr(-0.01)}, "monthly_credits"},
		{"budget too high", tenant.TenantChange{MonthlyCredits: ptr(1e12 + 1)}, "monthly_credits"},
		{"budget in money below 0", tenant.TenantChange{MonthlyCost: ptr(-0.01)}, "monthly_cost"},
		{"budget in money too high", tenant.TenantChange{MonthlyCost: ptr(1e9 + 1)}, "monthly_cost"},
		{"budget that is no number", tenant.TenantChange{MonthlyCredits: ptr(math.NaN())}, "monthly_credits"},
		{"no audit", tenant.TenantChange{AuditDays: ptr(0)}, "audit_days must be 1 to 180"},
		{"audit too long", tenant.TenantChange{AuditDays: ptr(181)}, "audit_days"},
		{"unknown rule", tenant.TenantChange{RedactionOff: &[]string{"bearer", "nope"}}, "redaction_off"},
		{"daily cap below 0", tenant.TenantChange{Caps: &tenant.CapOverrides{TenantDaily: ptr(int64(-1))}}, "caps.tenant_daily"},
		{"hourly cap too high", tenant.TenantChange{Caps: &tenant.CapOverrides{AgentHourly: ptr(int64(1e9 + 1))}}, "caps.agent_hourly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.ChangeTenant(t.Context(), "key_1", "acme", c.change)
			refused(t, err, fault.Invalid, c.says)
			_, err = w.CreateTenant(t.Context(), "key_1", "new", c.change)
			refused(t, err, fault.Invalid, c.says)
		})
	}
	if after, err := w.Tenant(t.Context(), "acme"); err != nil || fmt.Sprint(after) != fmt.Sprint(made) {
		t.Errorf("refused changes left %+v (%v)", after, err)
	}
	edge, err := w.ChangeTenant(t.Context(), "key_1", "acme", tenant.TenantChange{
		Plan: ptr("pro"), MonthlyCredits: ptr(1e12), AuditDays: ptr(180), RedactionOff: &[]string{"jwt", "bearer", "jwt"},
		Caps: &tenant.CapOverrides{TenantDaily: ptr(int64(0)), AgentHourly: ptr(int64(1e9))},
	})
	if err != nil || *edge.DailyCap != 0 || *edge.HourlyCap != 1e9 || strings.Join(edge.RedactionOff, " ") != "bearer jwt" || edge.Plan != "pro" {
		t.Errorf("got %+v %v", edge, err)
	}
	_, err = w.ChangeTenant(t.Context(), "key_1", tenant.Operator, tenant.TenantChange{Disabled: ptr(true)})
	refused(t, err, fault.Conflict, "operator")
	_, err = w.ChangeTenant(t.Context(), "key_1", "unknown", tenant.TenantChange{})
	refused(t, err, fault.NotFound, "")
}

func TestPolicyIsNoted(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	changes := []tenant.TenantChange{
		{Caps: &tenant.CapOverrides{TenantDaily: ptr(int64(5))}},
		{Tier: ptr(tenant.Regulated)}, // turns the sandbox off too
		{Tier: ptr(tenant.Regulated), AuditDays: ptr(30)},
		{Tier: ptr(tenant.Standard), SandboxEnabled: ptr(true), Disabled: ptr(true)},
		{RedactionOff: &[]string{"jwt"}},
	}
	for _, c := range changes {
		_, err := w.ChangeTenant(ctx, "key_7", "acme", c)
		w.must(err)
	}
	_, err := w.PutTemplate(ctx, "key_8", "acme", "support", tenant.InternalOnly)
	w.must(err)
	_, err = w.PutTemplate(ctx, "key_8", "acme", "support", tenant.InternalOnly) // changes nothing
	w.must(err)
	_, err = w.PutTemplate(ctx, "key_8", "acme", "support", "")
	w.must(err)
	w.must(w.DeleteTemplate(ctx, "key_9", "acme", "support"))

	all, err := w.PolicyEvents(ctx, "acme")
	w.must(err)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s %s: %s -> %s", e.Actor, e.Field, e.Old, e.New))
		if e.ID == 0 || time.Since(e.CreatedAt).Abs() > time.Minute {
			t.Errorf("event %+v", e)
		}
	}
	want := `key_1 plan:  -> free
key_1 tier:  -> standard
key_1 sandbox_enabled:  -> true
key_1 network_enabled:  -> false
key_1 root_enabled:  -> false
key_1 key_isolation_enabled:  -> false
key_1 monthly_credits:  -> 0
key_1 monthly_cost:  -> 0
key_1 audit_days:  -> 30
key_1 audit_text:  -> false
key_1 caps.tenant_daily:  -> server
key_1 caps.agent_hourly:  -> server
key_1 disabled:  -> false
key_7 caps.tenant_daily: server -> 5
key_7 tier: standard -> regulated
key_7 sandbox_enabled: true -> false
key_7 tier: regulated -> standard
key_7 sandbox_enabled: false -> true
key_7 disabled: false -> true
key_7 redaction_off:  -> jwt
key_8 template/support: none -> internal-only
key_8 template/support: internal-only -> off
key_9 template/support: off -> none`
	if strings.Join(got, "\n") != want {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestPlansAreNoted(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	begin, err := w.PolicyEvents(ctx, tenant.Operator)
	w.must(err)
	if len(begin) == 0 || begin[0].Actor != "setup" || begin[0].New != "enterprise" {
		t.Errorf("the operator begins with %+v", begin)
	}
	p := tenant.Plan{Name: "team", MaxCPU: 1.5, MaxOutput: 1 << 20}
	_, err = w.PutPlan(ctx, "key_1", p)
	w.must(err)
	p.MaxCPU, p.Streaming = 2, true
	_, err = w.PutPlan(ctx, "key_2", p)
	w.must(err)
	w.tenant("acme", tenant.TenantChange{Plan: ptr("team")})
	refused(t, w.DeletePlan(ctx, "key_3", "team"), fault.Conflict, "") // and not noted
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Plan: ptr("free")})
	w.must(err)
	w.must(w.DeletePlan(ctx, "key_4", "team"))
	all, err := w.PolicyEvents(ctx, tenant.Operator)
	w.must(err)
	var got []string
	for _, e := range all[len(begin):] {
		got = append(got, fmt.Sprintf("%s %s: %s -> %s", e.Actor, strings.TrimPrefix(e.Field, "plan/team/"), e.Old, e.New))
	}
	want := `key_1 max_cpu:  -> 1.5
key_1 max_memory:  -> 0
key_1 concurrency:  -> 0
key_1 max_timeout:  -> 0s
key_1 streaming:  -> false
key_1 async:  -> false
key_1 key_isolation:  -> false
key_1 max_output:  -> 1048576
key_1 max_threads:  -> 0
key_1 max_thread_size:  -> 0
key_1 max_outputs:  -> 0
key_1 max_sandboxes:  -> 0
key_1 max_sandbox_memory:  -> 0
key_1 max_sandbox_disk:  -> 0
key_1 max_sandbox_life:  -> 0s
key_1 max_snapshots:  -> 0
key_1 max_snapshot_size:  -> 0
key_1 max_request_rate:  -> 0
key_1 max_key_request_rate:  -> 0
key_1 max_upload_rate:  -> 0
key_1 max_key_upload_rate:  -> 0
key_1 max_response_rate:  -> 0
key_1 max_key_response_rate:  -> 0
key_1 max_token_rate:  -> 0
key_1 max_key_token_rate:  -> 0
key_2 max_cpu: 1.5 -> 2
key_2 streaming: false -> true
key_4 max_cpu: 2 -> 
key_4 max_memory: 0 -> 
key_4 concurrency: 0 -> 
key_4 max_timeout: 0s -> 
key_4 streaming: true -> 
key_4 async: false -> 
key_4 key_isolation: false -> 
key_4 max_output: 1048576 -> 
key_4 max_threads: 0 -> 
key_4 max_thread_size: 0 -> 
key_4 max_outputs: 0 -> 
key_4 max_sandboxes: 0 -> 
key_4 max_sandbox_memory: 0 -> 
key_4 max_sandbox_disk: 0 -> 
key_4 max_sandbox_life: 0s -> 
key_4 max_snapshots: 0 -> 
key_4 max_snapshot_size: 0 -> 
key_4 max_request_rate: 0 -> 
key_4 max_key_request_rate: 0 -> 
key_4 max_upload_rate: 0 -> 
key_4 max_key_upload_rate: 0 -> 
key_4 max_response_rate: 0 -> 
key_4 max_key_response_rate: 0 -> 
key_4 max_token_rate: 0 -> 
key_4 max_key_token_rate: 0 -> `
	if strings.Join(got, "\n") != want {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestRegulatedTenantsHaveNoSandbox(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	if made := w.tenant("clinic", tenant.TenantChange{Tier: ptr(tenant.Regulated)}); made.SandboxEnabled {
		t.Error("a regulated tenant was made with the sandbox enabled")
	}
	_, err := w.CreateTenant(ctx, "key_1", "other", tenant.TenantChange{Tier: ptr(tenant.Regulated), SandboxEnabled: ptr(true)})
	refused(t, err, fault.Conflict, "regulated")
	_, err = w.ChangeTenant(ctx, "key_1", "clinic", tenant.TenantChange{SandboxEnabled: ptr(true)})
	refused(t, err, fault.Conflict, "regulated")
	w.tenant("acme", tenant.TenantChange{})
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Tier: ptr(tenant.Regulated), SandboxEnabled: ptr(true)})
	refused(t, err, fault.Conflict, "regulated")

	// However the changes come, no reader ever sees both.
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 25 {
				tier := tenant.Standard
				if (i+n)%2 == 0 {
					tier = tenant.Regulated
				}
				_, err := w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Tier: &tier})
				if err != nil {
					t.Error(err)
				}
				_, _ = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{SandboxEnabled: ptr(true)}) // refused or not
				if now, err := w.Tenant(ctx, "acme"); err != nil || now.Tier == tenant.Regulated && now.SandboxEnabled {
					t.Errorf("got %+v %v", now, err)
				}
			}
		})
	}
	wg.Wait()
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Tier: ptr(tenant.Regulated)})
	w.must(err)
	if back, err := w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Tier: ptr(tenant.Standard)}); err != nil || back.SandboxEnabled {
		t.Errorf("leaving the tier turned the sandbox on: %+v %v", back, err)
	}
}
