// Package environment serves a tenant's own environments, and has the wire types of what
// an environment allows, which the admin API and sandboxes share.
package environment

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve environments to keys with the scope environments.
type Handlers struct{ Tenants *tenant.Admin }

// Operations are those of /v1/environments. The original contract has them below /default,
// too.
func (h *Handlers) Operations() []httpapi.Operation {
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the environment does not exist, or belongs to another tenant.")
	refused := []httpapi.Answer{
		httpapi.Refusal(http.StatusForbidden, "forbidden: the key's scopes lack environments, or the tenant's policy allows no network."),
		httpapi.Refusal(http.StatusConflict, "conflict: the name is taken."),
		httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: above the tenant's plan."),
	}
	id := []httpapi.Param{{Name: "environment", In: httpapi.InPath, Doc: "Id or name."}}
	example := &ConfigChange{
		Resources: &ResourcesChange{CPU: new(1.0), MemoryMB: new(int64(512))}, PermissionProfile: new("standard"),
		Permissions: &PermissionsChange{Network: &NetworkChange{Enabled: new(true), AllowedHosts: &[]string{"api.example.com", "*.data.example.com"}}},
	}
	var ops []httpapi.Operation
	for _, base := range []struct{ path, suffix string }{{"/v1/environments", ""}, {"/default/v1/environments", "Default"}} {
		one := base.path + "/{environment}"
		ops = append(ops, []httpapi.Operation{
			{
				Method: http.MethodGet, Path: base.path, ID: "listOwnEnvironments" + base.suffix, Summary: "List the tenant's environments", Description: "Every environment of the key's tenant, with variables and without the values of secrets. A key needs the scope `read`.", Params: httpapi.PageParams(50, 100),
				Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[OwnEnvironment]{}, "A page.")}, Serve: httpapi.Returns(h.list),
			},
			{
				Method: http.MethodPost, Path: base.path, ID: "createOwnEnvironment" + base.suffix, Summary: "Create an environment", Description: "Omitted fields get the values of the server's configuration. Above the tenant's plan the answer is 429 and names the bound. A key needs the scope `environments`.",
				Body:    httpapi.JSON(NewOwnEnvironment{Name: new("reports"), Config: example}),
				Answers: append([]httpapi.Answer{httpapi.Created(OwnEnvironment{}, "It is created; the operator binds keys to it.")}, refused...), Serve: httpapi.Takes(h.create),
			},
			{
				Method: http.MethodGet, Path: one, ID: "getOwnEnvironment" + base.suffix, Summary: "Show an environment", Description: "By id or name.", Params: id,
				Answers: []httpapi.Answer{httpapi.OK(OwnEnvironment{}, "The environment."), unknown}, Serve: httpapi.Returns(h.get),
			},
			{
				Method: http.MethodPatch, Path: one, ID: "changeOwnEnvironment" + base.suffix, Summary: "Change an environment", Description: "Omitted fields stay unchanged; a list replaces the one before. Executions that run continue with what they were started with. Above the tenant's plan the answer is 429.", Params: id,
				Body:    httpapi.JSON(OwnEnvironmentChange{Config: example}),
				Answers: append([]httpapi.Answer{httpapi.OK(OwnEnvironment{}, "It is changed, from the next execution on."), unknown}, refused...), Serve: httpapi.Takes(h.change),
			},
			{
				Method: http.MethodDelete, Path: one, ID: "deleteOwnEnvironment" + base.suffix, Summary: "Delete an environment that no valid key is bound to", Description: "Also deletes its named sandboxes and snapshots. Returns 409 if a valid key uses the environment.", Params: id,
				Answers: []httpapi.Answer{httpapi.NoContent("It is deleted."), unknown, httpapi.Refusal(http.StatusConflict, "conflict: keys are bound to it.")}, Serve: httpapi.Does(h.delete),
			},
		}...)
	}
	for i := range ops {
		ops[i].Tag, ops[i].Scope = "environments", tenant.ScopeEnvironments
	}
	return ops
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[OwnEnvironment], err error) {
	all, err := h.Tenants.Environments(c.Context(), c.Caller.Tenant.ID)
	if err != nil {
		return out, err
	}
	out, err = httpapi.PageOf(c, all, func(e tenant.Environment) string { return e.ID }, environmentOf)
	for i := range out.Data { // of a page, of which few have packages
		for k := range all {
			if err == nil && all[k].ID == out.Data[i].ID && !all[k].Packages.Empty() {
				out.Data[i], err = h.render(c, all[k], nil)
			}
		}
	}
	return out, err
}

func (h *Handlers) create(c *httpapi.Call, in *NewOwnEnvironment) (out OwnEnvironment, err error) {
	change, err := in.Config.domain(h.Tenants.Limits())
	if err != nil {
		return out, err
	}
	if change.Template == nil {
		change.Template = new("")
	}
	e, err := h.Tenants.CreateOwnEnvironment(c.Context(), c.Caller.Key.ID, c.Caller.Tenant.ID, nameOf(*in.Name), change)
	return h.render(c, e, err)
}

// spaces can be in a name of the contract, and not in an operator's.
var spaces = regexp.MustCompile(` +`)

// nameOf gives a name the form that names have here: "My Env" becomes My-Env.
func nameOf(name string) string { return spaces.ReplaceAllString(strings.TrimSpace(name), "-") }

// find returns the environment that a request is about.
func (h *Handlers) find(c *httpapi.Call) (tenant.Environment, error) {
	name := c.Path("environment")
	unknown := fault.New(fault.NotFound, "environment %.80q not found", name)
	if !tenant.Name.MatchString(name) {
		return tenant.Environment{}, unknown
	}
	e, err := h.Tenants.Environment(c.Context(), c.Caller.Tenant.ID, name)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return e, unknown
	}
	return e, err
}

func (h *Handlers) get(c *httpapi.Call) (out OwnEnvironment, err error) {
	e, err := h.find(c)
	return h.render(c, e, err)
}

func (h *Handlers) change(c *httpapi.Call, in *OwnEnvironmentChange) (out OwnEnvironment, err error) {
	e, err := h.find(c)
	if err != nil {
		return out, err
	}
	change, err := in.Config.domain(e.Limits)
	if err != nil {
		return out, err
	}
	if in.Name != nil {
		change.Name = new(nameOf(*in.Name))
	}
	e, err = h.Tenants.ChangeEnvironment(c.Context(), c.Caller.Tenant.ID, e.ID, change)
	return h.render(c, e, err)
}

func (h *Handlers) delete(c *httpapi.Call) error {
	e, err := h.find(c)
	if err != nil {
		return err
	}
	return h.Tenants.DeleteEnvironment(c.Context(), c.Caller.Key.ID, c.Caller.Tenant.ID, e.ID)
}
