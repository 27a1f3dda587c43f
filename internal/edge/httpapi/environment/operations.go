// Package environment serves a tenant's own environments.
package environment

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Handlers serve environments to keys with the scope environments.
type Handlers struct{ Service *environments.Service }

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
		Permissions: &environmentwire.PermissionsChange{Network: &environmentwire.NetworkChange{Enabled: new(true), AllowedHosts: &[]string{"api.example.com", "*.data.example.com"}}},
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
	all, err := h.Service.List(c.Context(), c.Caller)
	if err != nil {
		return out, err
	}
	page, err := httpapi.PageOf(c, all, func(e tenant.Environment) string { return e.ID }, func(e tenant.Environment) tenant.Environment { return e })
	if err != nil {
		return out, err
	}
	built, err := h.Service.Builds(c.Context(), page.Data)
	return httpapi.Page[OwnEnvironment]{Data: httpapi.Each(built, environmentOf), NextPage: page.NextPage}, err
}

func (h *Handlers) create(c *httpapi.Call, in *NewOwnEnvironment) (out OwnEnvironment, err error) {
	change, err := in.Config.domain()
	if err != nil {
		return out, err
	}
	e, err := h.Service.Create(c.Context(), c.Caller, *in.Name, change)
	return environmentOf(e), environmentwire.InConfig(err)
}

func (h *Handlers) get(c *httpapi.Call) (OwnEnvironment, error) {
	e, err := h.Service.Get(c.Context(), c.Caller, c.Path("environment"))
	return environmentOf(e), err
}

func (h *Handlers) change(c *httpapi.Call, in *OwnEnvironmentChange) (out OwnEnvironment, err error) {
	before, err := h.Service.Find(c.Context(), c.Caller, c.Path("environment"))
	if err != nil {
		return out, err
	}
	change, err := in.Config.domain()
	if err != nil {
		return out, err
	}
	change.Name = in.Name
	e, err := h.Service.Change(c.Context(), c.Caller, &before, change)
	return environmentOf(e), environmentwire.InConfig(err)
}

func (h *Handlers) delete(c *httpapi.Call) error {
	_, err := h.Service.Delete(c.Context(), c.Caller, c.Path("environment"))
	return err
}
