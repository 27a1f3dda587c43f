package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Networks lists what a template can ask for.
var Networks = []Network{DefaultPublic, InternalOnly}

// PutTemplate makes a template or replaces it; network is empty for one that
// has not opted in.
func (a *Admin) PutTemplate(ctx context.Context, actor, tenant, name string, network Network) (Template, error) {
	defer a.changing()()
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return Template{}, err
	}
	if err := checkName("template", name); err != nil {
		return Template{}, err
	}
	if network != "" {
		if err := oneOf("sandbox.environment", network, Networks); err != nil {
			return Template{}, err
		}
	}
	old, err := a.store.Template(ctx, t.ID, name)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return Template{}, err
	}
	before := "none"
	if err == nil {
		if before = told(old.Sandbox); before == told(network) {
			return old, nil
		}
	}
	out := Template{Tenant: t.ID, Name: name, Sandbox: network}
	return out, a.store.PutTemplate(ctx, out, templateEvent(out, actor, before, told(network)))
}

// Template returns a template by its name.
func (a *Admin) Template(ctx context.Context, tenant, name string) (Template, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return Template{}, err
	}
	return a.store.Template(ctx, t.ID, name)
}

// Templates returns a tenant's templates.
func (a *Admin) Templates(ctx context.Context, tenant string) ([]Template, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return a.store.Templates(ctx, t.ID)
}

// DeleteTemplate removes a template; its agents have the sandbox no more.
func (a *Admin) DeleteTemplate(ctx context.Context, actor, tenant, name string) error {
	defer a.changing()()
	old, err := a.Template(ctx, tenant, name)
	if err != nil {
		return err
	}
	return a.store.DeleteTemplate(ctx, old.Tenant, name, templateEvent(old, actor, told(old.Sandbox), "none"))
}

// told is how events tell a template's network; "none" is for no template.
func told(n Network) string {
	if n == "" {
		return "off"
	}
	return string(n)
}

func templateEvent(t Template, actor, before, after string) PolicyEvent {
	return PolicyEvent{Tenant: t.Tenant, Actor: actor, Field: "template/" + t.Name, Old: before, New: after, CreatedAt: now()}
}
