package admin

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Environment is an environment as the admin API shows it.
type Environment struct {
	ID          string                 `json:"id" doc:"env_ and 16 hexadecimal digits."`
	Tenant      string                 `json:"tenant" doc:"The tenant's id."`
	Name        string                 `json:"name"`
	Image       string                 `json:"image" doc:"The image that it runs."`
	Limits      environmentwire.Limits `json:"limits"`
	EnvVars     map[string]string      `json:"env_vars" doc:"Variables of programs by name."`
	Secrets     []string               `json:"secrets" doc:"Names of the secret variables. Their values are never shown."`
	SecretHosts map[string][]string    `json:"secret_hosts" doc:"Of secrets that programs do not get, the hosts whose requests they are put into."`
	CreatedAt   time.Time              `json:"created_at"`

	Permissions environmentwire.Permissions `json:"permissions" doc:"Permissions of programs: network, files and processes."`
	Isolation   string                      `json:"isolation" enum:"run,key" doc:"Whether each execution has its own kernel (run), or the executions of a key share one (key)."`
	Packages    environmentwire.Packages    `json:"packages" doc:"Packages that are installed in the image."`

	PackageBuild *environmentwire.PackageBuild `json:"package_build" doc:"How far the image of the environment is: its packages, or a variant of the default image such as default+browser. null without both, and in lists."`

	SandboxesToRestart int `json:"sandboxes_to_restart,omitzero" doc:"In the answer to a change of permissions: the number of named sandboxes that POST /v1/sandboxes/{sandbox}/restart would give more of the network."`
}

// EnvironmentChange is what PATCH can change of an environment; omitted fields stay unchanged.
type EnvironmentChange struct {
	Name    *string                       `json:"name,omitzero" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"`
	Image   *string                       `json:"image,omitzero" doc:"A name from atoll image list."`
	Limits  *environmentwire.LimitsChange `json:"limits,omitzero"`
	EnvVars map[string]wire.Text          `json:"env_vars,omitzero" nullable:"true" doc:"Variables to set; others stay. Rules as in an execution's env_vars."`
	Secrets map[string]wire.Text          `json:"secrets,omitzero" nullable:"true" doc:"Secret variables to set; others stay. At least 8 characters each. They are stored encrypted, kept out of output and never shown."`
	Unset   []wire.Text                   `json:"unset,omitzero" nullable:"true" doc:"Names of variables and secrets to take away."`

	SecretHosts map[string][]wire.Text `json:"secret_hosts,omitzero" nullable:"true" doc:"Binds secrets to hosts; others stay as they are. The program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one; an empty list has programs get the secret itself."`

	PermissionProfile *string                            `json:"permission_profile,omitzero" enum:"unrestricted,standard,restricted,isolated" doc:"Begins anew with the rules of a profile, which permissions then change."`
	Permissions       *environmentwire.PermissionsChange `json:"permissions,omitzero" doc:"Rules of network, file system and processes. A new environment has no network, and nothing else restricted."`
	Isolation         *string                            `json:"isolation,omitzero" enum:"run,key" doc:"run: each execution has its own kernel. key: executions of one key use the same kernel one after another, each with separate processes, files, memory and sockets that Atoll deletes afterwards; docs/concepts/security.md lists what they share. key requires permissions without network and rules."`
	Packages          *environmentwire.PackagesChange    `json:"packages,omitzero" doc:"Packages to install in the image, once, from the registries that the operator has configured. Setting them again has what failed tried again."`
}

func (c EnvironmentChange) domain() (tenant.EnvironmentChange, error) {
	out := tenant.EnvironmentChange{Name: c.Name, Image: c.Image, Variables: variablesChange(c.EnvVars, c.Secrets, c.Unset, c.SecretHosts)}
	out.Limits, out.Packages = c.Limits.Domain(), c.Packages.Domain()
	out.Isolation = (*execution.Isolation)(c.Isolation)
	var err error
	out.Permissions, err = c.Permissions.Domain()
	out.Permissions.Profile = (*tenant.Profile)(c.PermissionProfile)
	return out, err
}

func variablesChange(env, secrets map[string]wire.Text, unset []wire.Text, hosts map[string][]wire.Text) tenant.VariablesChange {
	out := tenant.VariablesChange{Env: wire.StringMap(env), Secrets: wire.StringMap(secrets)}
	for _, name := range unset {
		out.Unset = append(out.Unset, string(name))
	}
	for name, list := range hosts {
		if out.Hosts == nil {
			out.Hosts = map[string][]string{}
		}
		out.Hosts[name] = nil
		for _, host := range list {
			out.Hosts[name] = append(out.Hosts[name], string(host))
		}
	}
	return out
}

// variablesWire shows variables: secret ones by their names.
func variablesWire(env, secrets map[string]string) (map[string]string, []string) {
	if env == nil {
		env = map[string]string{}
	}
	return env, append([]string{}, slices.Sorted(maps.Keys(secrets))...)
}

// hostsWire shows what secrets are bound to.
func hostsWire(bound map[string]tenant.Binding) map[string][]string {
	out := make(map[string][]string, len(bound))
	for name, b := range bound {
		out[name] = b.Hosts
	}
	return out
}

func environmentOf(e tenant.Environment) Environment {
	env, secrets := variablesWire(e.Env, e.Secrets)
	return Environment{
		ID: e.ID, Tenant: e.Tenant, Name: e.Name, Image: e.Image, Limits: environmentwire.LimitsOf(e.Limits), EnvVars: env,
		Secrets: secrets, SecretHosts: hostsWire(e.Bound), CreatedAt: e.CreatedAt,
		Permissions: environmentwire.PermissionsOf(&e), Isolation: cmp.Or(e.Isolation, string(execution.IsolationRun)), Packages: environmentwire.PackagesOf(&e.Packages),
	}
}

func builtOf(e environments.Environment) Environment {
	out := environmentOf(e.Environment)
	out.PackageBuild = environmentwire.PackageBuildOf(e.Build)
	return out
}
