package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

func (d *Handlers) environments() []httpapi.Operation {
	const all, one = "/v1/environments", "/v1/environments/{environment}"
	body := httpapi.JSON(EnvironmentFields{})
	ops := []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Params: append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool}), Serve: httpapi.Returns(d.listEnvironments)},
		{Method: http.MethodPost, Path: all, Body: body, Serve: httpapi.Takes(d.createEnvironment)},
		{Method: http.MethodGet, Path: one, Serve: httpapi.Returns(d.environment)},
		{Method: http.MethodPost, Path: one, Body: body, Serve: httpapi.Takes(d.changeEnvironment)},
		{Method: http.MethodDelete, Path: one, Serve: httpapi.Returns(d.deleteEnvironment)},
	}
	for i := range ops {
		ops[i].Scope = tenant.ScopeEnvironments
	}
	return ops
}

func (d *Handlers) listEnvironments(c *httpapi.Call) (out httpapi.Page[Environment], err error) {
	all, err := d.Environments.List(c.Context(), c.Caller)
	if err != nil {
		return out, err
	}
	page, err := httpapi.PageOf(c, all, func(e tenant.Environment) string { return e.ID }, func(e tenant.Environment) tenant.Environment { return e })
	if err != nil {
		return out, err
	}
	built, err := d.Environments.Builds(c.Context(), page.Data)
	return httpapi.Page[Environment]{Data: httpapi.Each(built, environmentOf), NextPage: page.NextPage}, err
}

func (d *Handlers) environment(c *httpapi.Call) (Environment, error) {
	e, err := d.Environments.Get(c.Context(), c.Caller, c.Path("environment"))
	return environmentOf(e), err
}

func (d *Handlers) deleteEnvironment(c *httpapi.Call) (out Deleted, err error) {
	id, err := d.Environments.Delete(c.Context(), c.Caller, c.Path("environment"))
	return Deleted{id, "environment_deleted"}, err
}

func (d *Handlers) createEnvironment(c *httpapi.Call, in *EnvironmentFields) (out Environment, err error) {
	if in.Name == nil {
		return out, httpapi.Invalid("name is required: a string")
	}
	change, err := in.change(runtime.NetworkPolicy{})
	if err != nil {
		return out, err
	}
	e, err := d.Environments.Create(c.Context(), c.Caller, *in.Name, change)
	return environmentOf(e), environmentwire.InConfig(err)
}

func (d *Handlers) changeEnvironment(c *httpapi.Call, in *EnvironmentFields) (out Environment, err error) {
	before, err := d.Environments.Find(c.Context(), c.Caller, c.Path("environment"))
	if err != nil {
		return out, err
	}
	change, err := in.change(before.Permissions.Network)
	if err != nil {
		return out, err
	}
	change.Name = in.Name
	e, err := d.Environments.Change(c.Context(), c.Caller, &before, change)
	return environmentOf(e), environmentwire.InConfig(err)
}

// change decodes the change of an environment whose current network is now. It rejects unsupported
// fields by name.
func (in *EnvironmentFields) change(now runtime.NetworkPolicy) (out tenant.EnvironmentChange, err error) {
	for _, f := range []struct {
		name string
		text jsontext.Value
		fine []string
	}{{"description", in.Description, []string{`""`}}, {"metadata", in.Metadata, []string{"{}"}}, {"scope", in.Scope, []string{`"organization"`}}} {
		if text := strings.Join(strings.Fields(string(f.text)), ""); text != "" && text != null && !slices.Contains(f.fine, text) {
			return out, httpapi.Invalid("%s is not supported by this version: leave it out", f.name)
		}
	}
	if len(in.Config) == 0 || in.Config.Kind() == 'n' {
		return out, nil
	}
	var of struct {
		Config *CloudFields `json:"config"`
	}
	if err := only("config", in.Config, &of); err != nil {
		return out, err
	}
	switch packages := of.Config.Packages; {
	case *of.Config.Type != cloud:
		return out, httpapi.Invalid("config.type must be %s: others are not supported by this version", cloud)
	case packages != nil && len(packages.Cargo)+len(packages.Gem)+len(packages.Go) > 0:
		return out, httpapi.Invalid("config.packages.cargo, gem and go are not supported by this version: leave them out, and install them in the sandbox")
	case packages != nil && packages.Type != nil && *packages.Type != "packages":
		return out, httpapi.Invalid("config.packages.type must be packages")
	}
	if p := of.Config.Packages; p != nil {
		out.Packages = tenant.PackagesChange{Apt: p.Apt, Pip: p.Pip, NPM: p.NPM}
	}
	if n := of.Config.Networking; n != nil {
		out.Permissions, err = n.change(now)
		out.Permissions.AllowMCP = n.AllowMCPServers
	}
	return out, err
}

// change returns the requested change of a network. In a limited network, omitted fields stay unchanged.
func (in *NetworkingFields) change(now runtime.NetworkPolicy) (out tenant.PermissionsChange, err error) {
	limits := in.AllowedHosts != nil || in.AllowMCPServers != nil || in.AllowPackageManagers != nil
	switch {
	case *in.Type == unrestricted && limits:
		return out, httpapi.Invalid("config.networking must have no more than type with the type %s", unrestricted)
	case *in.Type == unrestricted:
		return tenant.PermissionsChange{Network: new(true), AnyAddress: new(true)}, nil
	case *in.Type != limited:
		return out, httpapi.Invalid("config.networking.type must be %s or %s", limited, unrestricted)
	}
	return environments.Limit(now, in.AllowedHosts, in.AllowPackageManagers), nil
}

// networkingOf says what a network allows.
func networkingOf(n runtime.NetworkPolicy) Networking {
	to := environments.AccessOf(n)
	if to.Unrestricted {
		return Networking{Type: unrestricted}
	}
	return Networking{Type: limited, Limits: &Limits{AllowedHosts: to.Hosts, AllowPackageManagers: to.Registries}}
}

func environmentOf(e environments.Environment) Environment {
	none, packages := []string{}, environmentwire.PackagesOf(&e.Packages)
	out := Environment{
		ID: e.ID, Type: "environment", Name: e.Name, Metadata: map[string]string{}, Scope: "organization", CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt, Warnings: []Warning{},
		Config:       Cloud{Type: cloud, Networking: networkingOf(e.Permissions.Network), Packages: Packages{"packages", packages.Apt, none, none, none, packages.NPM, packages.Pip}},
		PackageBuild: environmentwire.PackageBuildOf(e.Build),
	}
	add := func(has bool, path string) {
		if has {
			out.Warnings = append(out.Warnings, Warning{path, "it is set, and this form cannot show it; it holds, and stays in a change"})
		}
	}
	if limits := out.Config.Networking.Limits; limits != nil {
		limits.AllowMCPServers = e.AllowMCP
	}
	network, files, process := e.Permissions.Network, e.Permissions.Filesystem, e.Permissions.Process
	add(e.Template != "", "config.base_template")
	add(e.Timeout > 0, "config.resources.timeout")
	add(len(network.AllowedCIDRs) > 0, "config.permissions.network.allowed_cidrs")
	add(len(network.BlockedPorts) > 0, "config.permissions.network.blocked_ports")
	add(files.Writable != nil || len(files.ReadOnly)+len(files.Blocked) > 0, "config.permissions.filesystem")
	add(process.Root || process.NoExec || len(process.BlockedCommands) > 0 || process.MaxProcesses > 0, "config.permissions.process")
	return out
}

// MarshalJSON writes a network without limits as no more than its type.
func (n Networking) MarshalJSON() ([]byte, error) {
	if n.Limits == nil {
		return json.Marshal(Typed{n.Type})
	}
	return json.Marshal(struct {
		Type string `json:"type"`
		Limits
	}{n.Type, *n.Limits})
}
