package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
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
	page, err := d.Environments.Page(c)
	out = httpapi.Page[Environment]{Data: []Environment{}, NextPage: page.NextPage}
	for i := range page.Data {
		out.Data = append(out.Data, environmentOf(&page.Data[i]))
	}
	return out, err
}

func (d *Handlers) environment(c *httpapi.Call) (Environment, error) {
	e, err := d.Environments.Find(c)
	return environmentOf(&e), err
}

func (d *Handlers) deleteEnvironment(c *httpapi.Call) (out Deleted, err error) {
	e, err := d.Environments.Find(c)
	if err == nil {
		err = d.Environments.Remove(c)
	}
	return Deleted{e.ID, "environment_deleted"}, err
}

func (d *Handlers) createEnvironment(c *httpapi.Call, in *EnvironmentFields) (out Environment, err error) {
	if in.Name == nil {
		return out, httpapi.Invalid("name is required: a string")
	}
	config, err := in.config(&environment.NetworkPermissions{})
	if err != nil {
		return out, err
	}
	e, err := d.Environments.Make(c, &environment.NewOwnEnvironment{Name: in.Name, Config: config})
	return environmentOf(&e), err
}

func (d *Handlers) changeEnvironment(c *httpapi.Call, in *EnvironmentFields) (out Environment, err error) {
	now, err := d.Environments.Find(c)
	if err != nil {
		return out, err
	}
	config, err := in.config(&now.Config.Permissions.Network)
	if err != nil {
		return out, err
	}
	e, err := d.Environments.Change(c, &environment.OwnEnvironmentChange{Name: in.Name, Config: config})
	return environmentOf(&e), err
}

// config reads what is to change of an environment, nil for nothing. What this version does not
// have is refused by name.
func (in *EnvironmentFields) config(now *environment.NetworkPermissions) (*environment.ConfigChange, error) {
	for _, f := range []struct {
		name string
		text jsontext.Value
		fine []string
	}{{"description", in.Description, []string{`""`}}, {"metadata", in.Metadata, []string{"{}"}}, {"scope", in.Scope, []string{`"organization"`}}} {
		if text := strings.Join(strings.Fields(string(f.text)), ""); text != "" && text != null && !slices.Contains(f.fine, text) {
			return nil, httpapi.Invalid("%s is not supported by this version: leave it out", f.name)
		}
	}
	if len(in.Config) == 0 || in.Config.Kind() == 'n' {
		return nil, nil
	}
	var of struct {
		Config *CloudFields `json:"config"`
	}
	if err := only("config", in.Config, &of); err != nil {
		return nil, err
	}
	switch packages := of.Config.Packages; {
	case *of.Config.Type != cloud:
		return nil, httpapi.Invalid("config.type must be %s: others are not supported by this version", cloud)
	case packages != nil && len(packages.Cargo)+len(packages.Gem)+len(packages.Go) > 0:
		return nil, httpapi.Invalid("config.packages.cargo, gem and go are not supported by this version: leave them out, and install them in the sandbox")
	case packages != nil && packages.Type != nil && *packages.Type != "packages":
		return nil, httpapi.Invalid("config.packages.type must be packages")
	case of.Config.Networking == nil && packages == nil:
		return nil, nil
	}
	change := &environment.ConfigChange{}
	if p := of.Config.Packages; p != nil {
		change.Packages = &environment.PackagesChange{Apt: p.Apt, Pip: p.Pip, NPM: p.NPM}
	}
	if of.Config.Networking == nil {
		return change, nil
	}
	network, err := of.Config.Networking.change(now)
	change.Permissions = &environment.PermissionsChange{Network: network, AllowMCP: of.Config.Networking.AllowMCPServers}
	return change, err
}

// change returns the requested change of a network. In a limited network, omitted fields stay unchanged.
func (in *NetworkingFields) change(now *environment.NetworkPermissions) (*environment.NetworkChange, error) {
	limits := in.AllowedHosts != nil || in.AllowMCPServers != nil || in.AllowPackageManagers != nil
	switch {
	case *in.Type == unrestricted && limits:
		return nil, httpapi.Invalid("config.networking must have no more than type with the type %s", unrestricted)
	case *in.Type == unrestricted:
		return &environment.NetworkChange{Enabled: new(true), Unrestricted: new(true)}, nil
	case *in.Type != limited:
		return nil, httpapi.Invalid("config.networking.type must be %s or %s", limited, unrestricted)
	}
	var hosts []string
	registries := false
	if was := networkingOf(now).Limits; was != nil {
		hosts, registries = was.AllowedHosts, was.AllowPackageManagers
	}
	if in.AllowedHosts != nil {
		hosts = *in.AllowedHosts
	}
	if in.AllowPackageManagers != nil {
		registries = *in.AllowPackageManagers
	}
	all := slices.Clone(hosts)
	if registries {
		for _, host := range registryHosts() {
			if !slices.Contains(all, host) {
				all = append(all, host)
			}
		}
	}
	if len(all)+len(now.AllowedCIDRs) == 0 {
		return &environment.NetworkChange{Enabled: new(false)}, nil
	}
	return &environment.NetworkChange{Enabled: new(true), Unrestricted: new(false), AllowedHosts: &all}, nil
}

// registryHosts are the hosts of all package managers that a network can be opened for.
func registryHosts() (hosts []string) {
	for _, p := range tenant.Presets {
		hosts = append(hosts, p.Hosts...)
	}
	return hosts
}

// networkingOf says what a network allows. The hosts of package managers are a word of their
// own where all of them are allowed.
func networkingOf(n *environment.NetworkPermissions) Networking {
	if n.Unrestricted {
		return Networking{Type: unrestricted}
	}
	out := Networking{Type: limited, Limits: &Limits{AllowedHosts: []string{}}}
	registries := registryHosts()
	out.AllowPackageManagers = !slices.ContainsFunc(registries, func(host string) bool { return !slices.Contains(n.AllowedHosts, host) })
	for _, host := range n.AllowedHosts {
		if !out.AllowPackageManagers || !slices.Contains(registries, host) {
			out.AllowedHosts = append(out.AllowedHosts, host)
		}
	}
	return out
}

func environmentOf(e *environment.OwnEnvironment) Environment {
	none := []string{}
	out := Environment{
		ID: e.ID, Type: "environment", Name: e.Name, Metadata: map[string]string{}, Scope: "organization", CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt, Warnings: []Warning{},
		Config:       Cloud{Type: cloud, Networking: networkingOf(&e.Config.Permissions.Network), Packages: Packages{"packages", e.Config.Packages.Apt, none, none, none, e.Config.Packages.NPM, e.Config.Packages.Pip}},
		PackageBuild: e.PackageBuild,
	}
	add := func(has bool, path string) {
		if has {
			out.Warnings = append(out.Warnings, Warning{path, "it is set, and this form cannot show it; it holds, and stays in a change"})
		}
	}
	p := &e.Config.Permissions
	if limits := out.Config.Networking.Limits; limits != nil {
		limits.AllowMCPServers = p.AllowMCP
	}
	add(e.Config.BaseTemplate != nil, "config.base_template")
	add(e.Config.Resources.Timeout != nil, "config.resources.timeout")
	add(len(p.Network.AllowedCIDRs) > 0, "config.permissions.network.allowed_cidrs")
	add(len(p.Network.BlockedPorts) > 0, "config.permissions.network.blocked_ports")
	add(!slices.Equal(p.Filesystem.WritablePaths, []string{"/"}) || len(p.Filesystem.ReadOnlyPaths)+len(p.Filesystem.BlockedPaths) > 0, "config.permissions.filesystem")
	add(p.Process.Root || !p.Process.AllowExec || len(p.Process.BlockedCommands) > 0 || p.Process.MaxProcesses > 0, "config.permissions.process")
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
