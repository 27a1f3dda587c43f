package sdk

import (
	"context"
	"io"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

var adminCalls = map[string]call{
	"tokens.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateToken(ctx, body[sdk.NewToken](a))
	},
	"tokens.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Tokens().All(ctx, 0))
	},
	"tokens.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteToken(ctx, a.text("token_id"))
	},
	"environments.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateOwnEnvironment(ctx, body[sdk.NewOwnEnvironment](a))
	},
	"environments.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.OwnEnvironments().All(ctx, 0))
	},
	"environments.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.OwnEnvironment(ctx, a.text("environment"))
	},
	"environments.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeOwnEnvironment(ctx, a.text("environment"), body[sdk.OwnEnvironmentChange](a))
	},
	"environments.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteOwnEnvironment(ctx, a.text("environment"))
	},
	"models.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Models(ctx)
	},
	"models.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.OwnModel(ctx, a.text("model"))
	},
	"model_keys.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ModelKeys().All(ctx, 0))
	},
	"model_keys.put": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SetModelKey(ctx, a.text("model"), a.text("key"))
	},
	"model_keys.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteModelKey(ctx, a.text("model"))
	},
	"admin.tenants.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateTenant(ctx, body[sdk.NewTenant](a))
	},
	"admin.tenants.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Tenants().All(ctx, 0))
	},
	"admin.tenants.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Tenant(ctx, a.text("tenant"))
	},
	"admin.tenants.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeTenant(ctx, a.text("tenant"), body[sdk.TenantChange](a))
	},
	"admin.tenants.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.DeleteTenant(ctx, a.text("tenant"))
	},
	"admin.environments.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateEnvironment(ctx, a.text("tenant"), body[sdk.EnvironmentChange](a))
	},
	"admin.environments.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Environments(a.text("tenant")).All(ctx, 0))
	},
	"admin.environments.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Environment(ctx, a.text("tenant"), a.text("environment"))
	},
	"admin.environments.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeEnvironment(ctx, a.text("tenant"), a.text("environment"), body[sdk.EnvironmentChange](a))
	},
	"admin.environments.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteEnvironment(ctx, a.text("tenant"), a.text("environment"))
	},
	"admin.keys.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateKey(ctx, a.text("tenant"), body[sdk.NewKey](a))
	},
	"admin.keys.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Keys(a.text("tenant")).All(ctx, 0))
	},
	"admin.keys.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Key(ctx, a.text("tenant"), a.text("key"))
	},
	"admin.keys.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeKey(ctx, a.text("tenant"), a.text("key"), body[sdk.KeyChange](a))
	},
	"admin.keys.revoke": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.RevokeKey(ctx, a.text("tenant"), a.text("key"))
	},
	"admin.connections.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateConnection(ctx, a.text("tenant"), body[sdk.NewConnection](a))
	},
	"admin.connections.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Connections(a.text("tenant")).All(ctx, 0))
	},
	"admin.connections.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Connection(ctx, a.text("tenant"), a.text("connection"))
	},
	"admin.connections.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeConnection(ctx, a.text("tenant"), a.text("connection"), body[sdk.ConnectionChange](a))
	},
	"admin.connections.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteConnection(ctx, a.text("tenant"), a.text("connection"))
	},
	"admin.grants.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateGrant(ctx, a.text("tenant"), a.text("connection"), body[sdk.NewGrant](a))
	},
	"admin.grants.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Grants(a.text("tenant"), a.text("connection")).All(ctx, 0))
	},
	"admin.grants.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteGrant(ctx, a.text("tenant"), a.text("connection"), a.text("grant"))
	},
	"admin.templates.put": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.PutTemplate(ctx, a.text("tenant"), a.text("template"), body[sdk.TemplateChange](a))
	},
	"admin.templates.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Templates(a.text("tenant")).All(ctx, 0))
	},
	"admin.templates.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Template(ctx, a.text("tenant"), a.text("template"))
	},
	"admin.templates.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteTemplate(ctx, a.text("tenant"), a.text("template"))
	},
	"admin.model_keys.put": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SetTenantModelKey(ctx, a.text("tenant"), a.text("model"), a.text("key"))
	},
	"admin.model_keys.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.TenantModelKeys(a.text("tenant")).All(ctx, 0))
	},
	"admin.model_keys.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteTenantModelKey(ctx, a.text("tenant"), a.text("model"))
	},
	"admin.policy_events.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.PolicyEvents(a.text("tenant")).All(ctx, 0))
	},
	"admin.usage.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Usage(ctx, a.text("tenant"), a.query("since", "before", "group_by", "agent", "session_id"))
	},
	"admin.activity.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.TenantActivity(a.text("tenant"), a.query(activityFilters...)).All(ctx, 0))
	},
	"admin.webhooks.redeliver": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Redeliver(ctx, a.text("tenant"), a.text("trace_id"))
	},
	"admin.plans.put": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.PutPlan(ctx, a.text("plan"), body[sdk.PlanBounds](a))
	},
	"admin.plans.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Plans().All(ctx, 0))
	},
	"admin.plans.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Plan(ctx, a.text("plan"))
	},
	"admin.plans.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeletePlan(ctx, a.text("plan"))
	},
	"admin.caps.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Caps(ctx)
	},
	"admin.caps.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeCaps(ctx, body[sdk.CapsChange](a))
	},
	"admin.models.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateModel(ctx, body[sdk.NewModel](a))
	},
	"admin.models.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.AllModels().All(ctx, 0))
	},
	"admin.models.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Model(ctx, a.text("model"))
	},
	"admin.models.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeModel(ctx, a.text("model"), body[sdk.ModelChange](a))
	},
	"admin.models.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteModel(ctx, a.text("model"))
	},
	"admin.models.test": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.TestModel(ctx, a.text("model"), body[sdk.ModelTest](a))
	},
	"admin.orphans.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Orphans(ctx))
	},
	"admin.orphans.reap": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Reap(ctx))
	},
	"admin.audit.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Audit(a.text("tenant"), a.query("metadata", "limit", "since", "before")).All(ctx, 0))
	},
	"admin.audit.export": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		tenant, query := a.text("tenant"), a.query("since", "before")
		return download(func(w io.Writer) error { return c.ExportAudit(ctx, tenant, query, w) })
	},
	"admin.audit.verify": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.VerifyAudit(ctx, a.text("tenant"), body[sdk.AuditCheck](a))
	},
	"admin.audit.trails": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.AuditTrails().All(ctx, 0))
	},
}
