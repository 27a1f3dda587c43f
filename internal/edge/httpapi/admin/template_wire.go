package admin

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Template is an agent template.
type Template struct {
	Name    string           `json:"name"`
	Sandbox *TemplateSandbox `json:"sandbox" doc:"null for a template that has not opted in."`
}

// TemplateSandbox is a template's opting in.
type TemplateSandbox struct {
	Environment string `json:"environment" enum:"default-public,internal-only" doc:"Network of its sandboxes. internal-only: no network. default-public: the network of the key's environment, or all public addresses if that has none; where the tenant's policy allows no network, every call fails as SandboxProvisioning."`
}

// TemplateChange is the body that makes or replaces a template.
type TemplateChange struct {
	Sandbox *TemplateSandbox `json:"sandbox,omitzero" doc:"If omitted, the template has not opted in."`
}

func (c TemplateChange) domain() (tenant.Network, error) {
	switch {
	case c.Sandbox == nil:
		return "", nil
	case c.Sandbox.Environment == "":
		return "", httpapi.Invalid("sandbox.environment is required")
	}
	return tenant.Network(c.Sandbox.Environment), nil
}

func templateOf(t tenant.Template) Template {
	out := Template{Name: t.Name}
	if t.Sandbox != "" {
		out.Sandbox = &TemplateSandbox{string(t.Sandbox)}
	}
	return out
}

// PolicyEvent notes a change to what a tenant may do.
type PolicyEvent struct {
	ID        int64     `json:"id" doc:"The event's number, which grows with each event."`
	Actor     string    `json:"actor" doc:"Id of the key that made it."`
	Field     string    `json:"field" doc:"Such as sandbox_enabled, or template/support."`
	Old       string    `json:"old" doc:"The value before the change, as JSON; empty if it was made."`
	New       string    `json:"new" doc:"The value after the change, as JSON; empty if it was removed."`
	CreatedAt time.Time `json:"created_at" doc:"When the change was made."`
}

func eventOf(e tenant.PolicyEvent) PolicyEvent {
	return PolicyEvent{e.ID, e.Actor, e.Field, e.Old, e.New, e.CreatedAt}
}
