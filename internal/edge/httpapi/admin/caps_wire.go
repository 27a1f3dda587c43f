package admin

import "github.com/atoll-run/atoll/internal/core/breaker"

// Caps are the installation's caps of execute_code.
type Caps struct {
	TenantDaily int64 `json:"tenant_daily" doc:"Calls of a tenant per UTC day; 0 stops every call."`
	AgentHourly int64 `json:"agent_hourly" doc:"Calls of an agent per UTC hour; 0 stops every call."`
}

// CapsChange is what PATCH can change of them; omitted fields stay unchanged.
type CapsChange struct {
	TenantDaily *int64 `json:"tenant_daily,omitzero" minimum:"0" maximum:"1000000000" doc:"Calls of execute_code that a tenant may make in a day; 0 stops every call."`
	AgentHourly *int64 `json:"agent_hourly,omitzero" minimum:"0" maximum:"1000000000" doc:"Calls of execute_code that one agent may make in an hour; 0 stops every call."`
}

func capsOf(c breaker.Caps) Caps { return Caps{c.TenantDaily, c.AgentHourly} }
