package httpapi

import (
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Limits bound what one sandbox may use. Sizes are in bytes.
type Limits struct {
	CPU       float64 `json:"cpu" doc:"Cores."`
	Memory    int64   `json:"memory"`
	Processes int     `json:"processes"`
	OpenFiles int     `json:"open_files"`
	RootSize  int64   `json:"root_size"`
	TmpSize   int64   `json:"tmp_size"`
	ShmSize   int64   `json:"shm_size"`
	Inodes    int     `json:"inodes"`
}

// LimitsChange is what can be changed of limits; what is left out stays, or is
// the server's in a new environment.
type LimitsChange struct {
	CPU       *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, above 0."`
	Memory    *int64   `json:"memory,omitzero" minimum:"67108864" doc:"Bytes. The three sizes live in it."`
	Processes *int     `json:"processes,omitzero" minimum:"1" maximum:"1048576"`
	OpenFiles *int     `json:"open_files,omitzero" minimum:"1" maximum:"1048576"`
	RootSize  *int64   `json:"root_size,omitzero" minimum:"1"`
	TmpSize   *int64   `json:"tmp_size,omitzero" minimum:"1"`
	ShmSize   *int64   `json:"shm_size,omitzero" minimum:"1"`
	Inodes    *int     `json:"inodes,omitzero" minimum:"1" maximum:"1073741824"`
}

func limitsWire(l runtime.Limits) Limits {
	return Limits{l.CPU, l.Memory, l.Processes, l.OpenFiles, l.Root, l.Tmp, l.Shm, l.Inodes}
}

// Environment is an environment as the admin API shows it.
type Environment struct {
	ID          string              `json:"id" doc:"env_ and 16 hexadecimal digits."`
	Tenant      string              `json:"tenant" doc:"The tenant's id."`
	Name        string              `json:"name"`
	Image       string              `json:"image"`
	Limits      Limits              `json:"limits"`
	EnvVars     map[string]string   `json:"env_vars"`
	Secrets     []string            `json:"secrets" doc:"Names of the secret variables. Their values are never shown."`
	SecretHosts map[string][]string `json:"secret_hosts" doc:"Of secrets that programs do not get, the hosts whose requests they are put into."`
	CreatedAt   time.Time           `json:"created_at"`

	Permissions Permissions `json:"permissions"`
}

// EnvironmentChange is what PATCH can change of an environment; what is left
// out stays.
type EnvironmentChange struct {
	Name    *string         `json:"name,omitzero" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"`
	Image   *string         `json:"image,omitzero" doc:"A name from atoll image list."`
	Limits  *LimitsChange   `json:"limits,omitzero"`
	EnvVars map[string]Text `json:"env_vars,omitzero" nullable:"true" doc:"Variables to set; others stay. Rules as in an execution's env_vars."`
	Secrets map[string]Text `json:"secrets,omitzero" nullable:"true" doc:"Secret variables to set; others stay. At least 8 characters each. They are stored encrypted, kept out of output and never shown."`
	Unset   []Text          `json:"unset,omitzero" nullable:"true" doc:"Names of variables and secrets to take away."`

	SecretHosts map[string][]Text `json:"secret_hosts,omitzero" nullable:"true" doc:"Binds secrets to hosts; others stay as they are. The program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one; an empty list has programs get the secret itself."`

	PermissionProfile *string            `json:"permission_profile,omitzero" enum:"unrestricted,standard,restricted,isolated" doc:"Begins anew with the rules of a profile, which permissions then change."`
	Permissions       *PermissionsChange `json:"permissions,omitzero" doc:"Rules of network, file system and processes. A new environment has no network, and nothing else restricted."`
}

func (c EnvironmentChange) domain() (tenant.EnvironmentChange, error) {
	out := tenant.EnvironmentChange{Name: c.Name, Image: c.Image, Variables: variablesChange(c.EnvVars, c.Secrets, c.Unset, c.SecretHosts)}
	if l := c.Limits; l != nil {
		out.Limits = tenant.LimitsChange{
			CPU: l.CPU, Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles,
			Root: l.RootSize, Tmp: l.TmpSize, Shm: l.ShmSize, Inodes: l.Inodes,
		}
	}
	var err error
	out.Permissions, err = c.Permissions.domain()
	if c.PermissionProfile != nil {
		profile := tenant.Profile(*c.PermissionProfile)
		out.Permissions.Profile = &profile
	}
	return out, err
}

func variablesChange(env, secrets map[string]Text, unset []Text, hosts map[string][]Text) tenant.VariablesChange {
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

func environmentWire(e tenant.Environment) Environment {
	env, secrets := variablesWire(e.Env, e.Secrets)
	return Environment{
		ID: e.ID, Tenant: e.Tenant, Name: e.Name, Image: e.Image, Limits: limitsWire(e.Limits), EnvVars: env,
		Secrets: secrets, SecretHosts: hostsWire(e.Bound), CreatedAt: e.CreatedAt,
		Permissions: permissionsWire(e.Permissions),
	}
}
