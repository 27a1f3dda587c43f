package admin

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Tenant is a tenant as the admin API shows it.
type Tenant struct {
	ID             string       `json:"id" doc:"ten_ and 16 hexadecimal digits."`
	Name           string       `json:"name"`
	Plan           string       `json:"plan" doc:"The plan that bounds what it may use."`
	Tier           string       `json:"tier" enum:"standard,regulated" doc:"standard, or regulated, whose agents may do less."`
	SandboxEnabled bool         `json:"sandbox_enabled" doc:"Whether agents may use execute_code. Always false in the regulated tier."`
	MonthlyCredits float64      `json:"monthly_credits" doc:"Budget of a calendar month (UTC) in credits; 0 for none."`
	MonthlyCost    float64      `json:"monthly_cost" doc:"Budget of a calendar month (UTC) for what responses cost, in US dollars; 0 for none."`
	RedactionOff   []string     `json:"redaction_off" doc:"Redaction rules that do not apply."`
	AuditDays      int          `json:"audit_days" doc:"Days that audit rows are kept."`
	AuditText      bool         `json:"audit_text" doc:"Whether the activity shows the beginning of code and commands, redacted. While this is false, it has their hashes alone."`
	Caps           CapOverrides `json:"caps" doc:"Caps of execute_code; null for the server's."`
	NetworkEnabled bool         `json:"network_enabled" doc:"Whether its environments may have a network. While this is false, they have none."`
	RootEnabled    bool         `json:"root_enabled" doc:"Whether its environments may run programs as root of their sandbox. While this is false, those that do run them as the ordinary user, in sandboxes that are made from then on."`
	KeyIsolation   bool         `json:"key_isolation_enabled" doc:"Whether its environments may have isolation key. While this is false, each of their executions has a kernel of its own."`
	CreatedAt      time.Time    `json:"created_at"`
	DisabledAt     *time.Time   `json:"disabled_at" doc:"Since when its keys are refused; null if they are not."`
	DeletedAt      *time.Time   `json:"deleted_at" doc:"When its deletion was asked for; null if it was not. The tenant is answered as unknown once nothing of it is left."`

	Environment *FirstEnvironment `json:"environment,omitzero" doc:"Only in the answer to creating it: the environment that was created with it."`
}

// CapOverrides are a tenant's own caps.
type CapOverrides struct {
	TenantDaily *int64 `json:"tenant_daily" minimum:"0" maximum:"1000000000" doc:"Calls per UTC day; 0 stops every call, null is the server's."`
	AgentHourly *int64 `json:"agent_hourly" minimum:"0" maximum:"1000000000" doc:"Calls of one agent per UTC hour; 0 stops every call, null is the server's."`
}

// TenantChange is what PATCH can change of a tenant; omitted fields stay unchanged.
type TenantChange struct {
	Plan           *string       `json:"plan,omitzero" doc:"Name of a plan. Refused with 429 while an environment is above it."`
	Tier           *string       `json:"tier,omitzero" enum:"standard,regulated" doc:"regulated turns the sandbox off."`
	SandboxEnabled *bool         `json:"sandbox_enabled,omitzero" doc:"Refused with 409 in the regulated tier."`
	MonthlyCredits *float64      `json:"monthly_credits,omitzero" minimum:"0" maximum:"1000000000000" doc:"0 for no budget."`
	MonthlyCost    *float64      `json:"monthly_cost,omitzero" minimum:"0" maximum:"1000000000" doc:"US dollars; 0 for no budget."`
	RedactionOff   *[]string     `json:"redaction_off,omitzero" doc:"Replaces the list."`
	AuditDays      *int          `json:"audit_days,omitzero" minimum:"1" maximum:"180" doc:"How many days audit rows are kept, 1 to 180; rows that exist keep theirs."`
	AuditText      *bool         `json:"audit_text,omitzero" doc:"Whether the activity shows the beginning of code and commands, redacted; from the next call on."`
	Caps           *CapOverrides `json:"caps,omitzero" doc:"Replaces both; if you omit one, the server's applies."`
	NetworkEnabled *bool         `json:"network_enabled,omitzero" doc:"Whether its environments may have a network."`
	RootEnabled    *bool         `json:"root_enabled,omitzero" doc:"Whether its environments may run programs as root of their sandbox."`
	KeyIsolation   *bool         `json:"key_isolation_enabled,omitzero" doc:"Whether its environments may have isolation key."`
	Disabled       *bool         `json:"disabled,omitzero" doc:"Whether its keys are refused."`
}

// FirstEnvironment is the environment that was made with a tenant.
type FirstEnvironment struct {
	ID   string `json:"id" doc:"env_ and 16 hexadecimal digits."`
	Name string `json:"name"`
}

// NewTenant is the body that makes a tenant.
type NewTenant struct {
	Name        *string `json:"name" required:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"1 to 64 letters, digits, dots, underscores and hyphens, beginning with a letter or digit."`
	Environment *string `json:"environment,omitzero" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of an environment to make with it, with the image named default and the server's limits as far as the plan allows them. None is made if it is omitted."`
	TenantChange
}

func (c TenantChange) domain() tenant.TenantChange {
	out := tenant.TenantChange{
		Plan: c.Plan, SandboxEnabled: c.SandboxEnabled, MonthlyCredits: c.MonthlyCredits, MonthlyCost: c.MonthlyCost,
		RedactionOff: c.RedactionOff, AuditDays: c.AuditDays, AuditText: c.AuditText, Disabled: c.Disabled, NetworkEnabled: c.NetworkEnabled, RootEnabled: c.RootEnabled,
		KeyIsolationEnabled: c.KeyIsolation,
	}
	if c.Tier != nil {
		tier := tenant.Tier(*c.Tier)
		out.Tier = &tier
	}
	if c.Caps != nil {
		out.Caps = &tenant.CapOverrides{TenantDaily: c.Caps.TenantDaily, AgentHourly: c.Caps.AgentHourly}
	}
	return out
}

func tenantOf(t tenant.Tenant) Tenant {
	return Tenant{
		ID: t.ID, Name: t.Name, Plan: t.Plan, Tier: string(t.Tier), SandboxEnabled: t.SandboxEnabled, MonthlyCredits: t.MonthlyCredits, MonthlyCost: t.MonthlyCost,
		RedactionOff: append([]string{}, t.RedactionOff...), AuditDays: t.AuditDays, AuditText: t.AuditText,
		Caps: CapOverrides{t.DailyCap, t.HourlyCap}, CreatedAt: t.CreatedAt, DisabledAt: t.DisabledAt, DeletedAt: t.DeletedAt, NetworkEnabled: t.NetworkEnabled, RootEnabled: t.RootEnabled,
		KeyIsolation: t.KeyIsolationEnabled,
	}
}
