package tenant

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// Limits of a tenant's settings.
const (
	MaxCredits   = 1e12
	MaxCost      = 1e9 // US dollars
	MaxAuditDays = int(audit.MaxRetention / (24 * time.Hour))
	MaxCap       = 1_000_000_000
)

// Tiers lists every tier.
var Tiers = []Tier{Standard, Regulated}

// TenantChange changes a tenant; nil keeps a field.
type TenantChange struct {
	Plan           *string
	Tier           *Tier
	SandboxEnabled *bool
	MonthlyCredits *float64
	MonthlyCost    *float64
	RedactionOff   *[]string
	AuditDays      *int
	AuditText      *bool
	Caps           *CapOverrides // replaces both caps
	NetworkEnabled *bool
	RootEnabled    *bool

	KeyIsolationEnabled *bool
	Disabled            *bool
}

// CapOverrides are a tenant's own caps for execute_code; nil uses the server's cap.
type CapOverrides struct{ TenantDaily, AgentHourly *int64 }

// CreateTenant creates a tenant, on the free plan, in the standard tier and with the sandbox
// enabled unless c says otherwise. It records the initial settings as PolicyEvents by actor.
func (a *Admin) CreateTenant(ctx context.Context, actor, name string, c TenantChange) (Tenant, error) {
	defer a.changing()()
	t, err := a.newTenant(ctx, name, c)
	if err != nil {
		return Tenant{}, err
	}
	if err := a.store.CreateTenant(ctx, t, t.made(actor)...); err != nil {
		return Tenant{}, err
	}
	return a.find(ctx, t.ID)
}

// CreateTenantWithEnvironment creates a tenant and its first environment. The environment uses the
// image named default and the server's limits, capped by the tenant's plan.
func (a *Admin) CreateTenantWithEnvironment(ctx context.Context, actor, name, environment string, c TenantChange) (Tenant, Environment, error) {
	defer a.changing()()
	t, err := a.newTenant(ctx, name, c)
	if err != nil {
		return Tenant{}, Environment{}, err
	}
	e, err := a.firstEnvironment(ctx, t, environment)
	if err != nil {
		return Tenant{}, Environment{}, err
	}
	if err := a.store.CreateTenantWithEnvironment(ctx, t, e, append(t.made(actor), e.made(actor))...); err != nil {
		return Tenant{}, Environment{}, err
	}
	if t, err = a.find(ctx, t.ID); err != nil {
		return Tenant{}, Environment{}, err
	}
	e, err = a.store.Environment(ctx, t.ID, e.ID)
	return t, e, err
}

// firstEnvironment returns the first environment of a new tenant.
func (a *Admin) firstEnvironment(ctx context.Context, t Tenant, name string) (Environment, error) {
	plan, err := a.store.Plan(ctx, t.Plan)
	if err != nil {
		return Environment{}, err
	}
	e := Environment{ID: NewID("env"), Tenant: t.ID, Limits: a.cfg.Limits, CreatedAt: now()}
	if plan.MaxCPU > 0 {
		e.Limits.CPU = min(e.Limits.CPU, plan.MaxCPU)
	}
	if plan.MaxMemory > 0 {
		e.Limits.Memory = min(e.Limits.Memory, plan.MaxMemory)
	}
	return e, a.changeEnvironment(ctx, t, &e, EnvironmentChange{Name: &name, Image: new("default")})
}

// newTenant returns a validated tenant. It does not store the tenant.
func (a *Admin) newTenant(ctx context.Context, name string, c TenantChange) (Tenant, error) {
	if err := checkName("tenant", name); err != nil {
		return Tenant{}, err
	}
	t := Tenant{ID: NewID("ten"), Name: name, Plan: "free", Tier: Standard, AuditDays: int(audit.DefaultRetention / (24 * time.Hour)), CreatedAt: now()}
	t.SandboxEnabled = c.Tier == nil || *c.Tier != Regulated
	if err := a.checkTenant(ctx, "", c); err != nil {
		return Tenant{}, err
	}
	return t, c.apply(&t)
}

// Recorded is Tenant, but also finds deleted tenants by id, because their audit trails remain.
func (a *Admin) Recorded(ctx context.Context, idOrName string) (Tenant, error) {
	return a.store.Tenant(ctx, idOrName)
}

// Tenant returns a tenant by its id or name.
func (a *Admin) Tenant(ctx context.Context, idOrName string) (Tenant, error) {
	return a.find(ctx, idOrName)
}

// Tenants returns every tenant.
func (a *Admin) Tenants(ctx context.Context) ([]Tenant, error) { return a.store.Tenants(ctx) }

// ChangeTenant changes a tenant and records each change of its policy as a PolicyEvent by actor.
func (a *Admin) ChangeTenant(ctx context.Context, actor, idOrName string, c TenantChange) (Tenant, error) {
	defer a.changing()()
	t, err := a.find(ctx, idOrName)
	if err != nil {
		return Tenant{}, err
	}
	if err := a.checkTenant(ctx, t.ID, c); err != nil {
		return Tenant{}, err
	}
	if t.DeletedAt != nil {
		return Tenant{}, errDeleted(&t)
	}
	if t.Name == Operator && c.Disabled != nil && *c.Disabled {
		return Tenant{}, fault.New(fault.Conflict, "the tenant %s cannot be disabled: its keys administer the others", Operator)
	}
	return a.store.ChangeTenant(ctx, t.ID, func(t *Tenant) ([]PolicyEvent, error) {
		before := t.policy()
		if err := c.apply(t); err != nil {
			return nil, err
		}
		return events(t.ID, actor, before, t.policy()), nil
	})
}

// PolicyEvents returns a tenant's policy events, oldest first, even if the tenant is deleted.
func (a *Admin) PolicyEvents(ctx context.Context, idOrName string) ([]PolicyEvent, error) {
	t, err := a.store.Tenant(ctx, idOrName)
	if err != nil {
		return nil, err
	}
	return a.store.PolicyEvents(ctx, t.ID)
}

var errNoPlan = invalid("plan: not found; 'atoll plan list' lists the plans")

// checkTenant validates c against everything except the tenant's own fields. id is "" for a new
// tenant.
func (a *Admin) checkTenant(ctx context.Context, id ID, c TenantChange) error {
	if c.Plan != nil {
		if !Name.MatchString(*c.Plan) {
			return errNoPlan
		}
		p, err := a.store.Plan(ctx, *c.Plan)
		if err != nil && fault.KindOf(err) == fault.NotFound {
			return errNoPlan
		} else if err != nil {
			return err
		}
		if id != "" {
			if err := a.fitsAll(ctx, p, id); err != nil {
				return err
			}
		}
	}
	if c.Tier != nil {
		if err := oneOf("tier", *c.Tier, Tiers); err != nil {
			return err
		}
	}
	if n := c.MonthlyCredits; n != nil && !(*n >= 0 && *n <= MaxCredits) { // no comparison holds of NaN
		return invalid("monthly_credits must be between 0, for no budget, and %.0f", MaxCredits)
	}
	if n := c.MonthlyCost; n != nil && !(*n >= 0 && *n <= MaxCost) {
		return invalid("monthly_cost must be between 0, for no budget, and %.0f US dollars", MaxCost)
	}
	if n := c.AuditDays; n != nil && (*n < 1 || *n > MaxAuditDays) {
		return invalid("audit_days must be 1 to %d", MaxAuditDays)
	}
	if c.RedactionOff != nil {
		rules := make([]string, len(redact.Rules))
		for i, r := range redact.Rules {
			rules[i] = r.Name
		}
		for _, rule := range *c.RedactionOff {
			if err := oneOf("redaction_off", rule, rules); err != nil {
				return err
			}
		}
	}
	if c.Caps != nil {
		if err := checkCap("tenant_daily", c.Caps.TenantDaily); err != nil {
			return err
		}
		return checkCap("agent_hourly", c.Caps.AgentHourly)
	}
	return nil
}

func checkCap(name string, n *int64) error {
	if n != nil && (*n < 0 || *n > MaxCap) {
		return invalid("caps.%s must be between 0, which stops every call, and %d", name, MaxCap)
	}
	return nil
}

// apply applies the change. It always disables the sandbox of a regulated tenant.
func (c TenantChange) apply(t *Tenant) error {
	set(&t.Plan, c.Plan)
	set(&t.Tier, c.Tier)
	set(&t.SandboxEnabled, c.SandboxEnabled)
	set(&t.MonthlyCredits, c.MonthlyCredits)
	set(&t.MonthlyCost, c.MonthlyCost)
	set(&t.AuditDays, c.AuditDays)
	set(&t.AuditText, c.AuditText)
	set(&t.NetworkEnabled, c.NetworkEnabled)
	set(&t.RootEnabled, c.RootEnabled)
	set(&t.KeyIsolationEnabled, c.KeyIsolationEnabled)
	if c.RedactionOff != nil {
		t.RedactionOff = slices.Compact(slices.Sorted(slices.Values(*c.RedactionOff)))
	}
	if c.Caps != nil {
		t.DailyCap, t.HourlyCap = c.Caps.TenantDaily, c.Caps.AgentHourly
	}
	if c.Disabled != nil && *c.Disabled != (t.DisabledAt != nil) {
		t.DisabledAt = nil
		if *c.Disabled {
			at := now()
			t.DisabledAt = &at
		}
	}
	if t.Tier == Regulated {
		if c.SandboxEnabled != nil && *c.SandboxEnabled {
			return fault.New(fault.Conflict, "a tenant of the regulated tier cannot have the sandbox enabled")
		}
		t.SandboxEnabled = false
	}
	return nil
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// policy renders every field that limits a tenant as text, for events.
func (t *Tenant) policy() [][2]string {
	limit := func(n *int64) string {
		if n == nil {
			return "server"
		}
		return strconv.FormatInt(*n, 10)
	}
	return [][2]string{
		{"plan", t.Plan},
		{"tier", string(t.Tier)},
		{"sandbox_enabled", strconv.FormatBool(t.SandboxEnabled)},
		{"network_enabled", strconv.FormatBool(t.NetworkEnabled)},
		{"root_enabled", strconv.FormatBool(t.RootEnabled)},
		{"key_isolation_enabled", strconv.FormatBool(t.KeyIsolationEnabled)},
		{"monthly_credits", strconv.FormatFloat(t.MonthlyCredits, 'f', -1, 64)},
		{"monthly_cost", strconv.FormatFloat(t.MonthlyCost, 'f', -1, 64)},
		{"redaction_off", strings.Join(t.RedactionOff, ",")},
		{"audit_days", strconv.Itoa(t.AuditDays)},
		{"audit_text", strconv.FormatBool(t.AuditText)},
		{"caps.tenant_daily", limit(t.DailyCap)},
		{"caps.agent_hourly", limit(t.HourlyCap)},
		{"disabled", strconv.FormatBool(t.DisabledAt != nil)},
	}
}

// made returns the events of a created tenant.
func (t *Tenant) made(actor string) []PolicyEvent {
	return events(t.ID, actor, unset(t.policy()), t.policy())
}

// unset returns a policy with empty values.
func unset(policy [][2]string) [][2]string {
	out := slices.Clone(policy)
	for i := range out {
		out[i][1] = ""
	}
	return out
}

// events returns the differences between two policies.
func events(id ID, actor string, before, after [][2]string) []PolicyEvent {
	var out []PolicyEvent
	for i := range before {
		if before[i][1] != after[i][1] {
			out = append(out, PolicyEvent{Tenant: id, Actor: actor, Field: before[i][0], Old: before[i][1], New: after[i][1], CreatedAt: now()})
		}
	}
	return out
}
