package environment

import (
	"cmp"
	"time"

	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// OwnEnvironment is an environment as its tenant sees it.
type OwnEnvironment struct {
	ID        string            `json:"id" doc:"env_ and 16 hexadecimal digits."`
	Name      string            `json:"name"`
	Config    EnvironmentConfig `json:"config" doc:"Its resources and permissions."`
	CreatedAt time.Time         `json:"created_at"`

	PackageBuild *environmentwire.PackageBuild `json:"package_build" doc:"How far the image of the environment is: config.packages, or a variant of the default image such as default+browser; null without both."`
}

// EnvironmentConfig is what programs of an environment get and may do.
type EnvironmentConfig struct {
	Type              string                      `json:"type" enum:"cloud"`
	BaseTemplate      *string                     `json:"base_template" doc:"null for an image that the operator chose."`
	Resources         Resources                   `json:"resources" doc:"Processor, memory and time."`
	PermissionProfile *string                     `json:"permission_profile" doc:"The profile that permissions started from; null for none."`
	Permissions       environmentwire.Permissions `json:"permissions" doc:"Permissions of programs: network, files and processes."`
	Isolation         string                      `json:"isolation" enum:"run,key" doc:"Whether each execution has its own kernel (run), or the executions of a key share one (key)."`
	Packages          environmentwire.Packages    `json:"packages" doc:"Packages that are installed in the image."`
}

// Resources are what a sandbox of an environment may use.
type Resources struct {
	CPU      float64 `json:"cpu" doc:"Cores."`
	MemoryMB int64   `json:"memory_mb" doc:"MiB."`
	Timeout  *int64  `json:"timeout" doc:"Longest run in seconds, and that of a request which names none; null for the plan's."`
}

// NewOwnEnvironment is the body that makes an environment.
type NewOwnEnvironment struct {
	Name   *string       `json:"name" required:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$"`
	Config *ConfigChange `json:"config,omitzero" doc:"Its resources and permissions."`
}

// OwnEnvironmentChange is what PATCH can change of one; omitted fields stay unchanged.
type OwnEnvironmentChange struct {
	Name   *string       `json:"name,omitzero" pattern:"^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$"`
	Config *ConfigChange `json:"config,omitzero" doc:"Its resources and permissions."`
}

// ConfigChange changes an EnvironmentConfig.
type ConfigChange struct {
	Type              *string                            `json:"type,omitzero" enum:"cloud"`
	BaseTemplate      *string                            `json:"base_template,omitzero" doc:"One of the operator's templates; the default image if omitted."`
	Resources         *ResourcesChange                   `json:"resources,omitzero" doc:"Processor, memory and time."`
	PermissionProfile *string                            `json:"permission_profile,omitzero" enum:"unrestricted,standard,restricted,isolated" doc:"Starts again from the rules of a profile, which permissions then change. A new environment starts from standard."`
	Permissions       *environmentwire.PermissionsChange `json:"permissions,omitzero" doc:"Permissions of programs: network, files and processes."`
	Isolation         *string                            `json:"isolation,omitzero" enum:"run,key" doc:"run: each execution has its own kernel. key: executions of one key use the same kernel one after another, each with separate processes, files, memory and sockets that Atoll deletes afterwards; docs/concepts/security.md lists what they share. key requires permissions without network and rules."`
	Packages          *environmentwire.PackagesChange    `json:"packages,omitzero" doc:"Packages to install in the image, once, from the registries that the operator has configured. Setting them again has what failed tried again."`
}

// ResourcesChange changes Resources.
type ResourcesChange struct {
	CPU      *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, such as 0.5."`
	MemoryMB *int64   `json:"memory_mb,omitzero" minimum:"64" doc:"MiB of memory."`
	Timeout  *int64   `json:"timeout,omitzero" minimum:"1" maximum:"86400" doc:"Seconds that a program may run."`
}

func (c *ConfigChange) domain() (out tenant.EnvironmentChange, err error) {
	if c == nil {
		return out, nil
	}
	out.Template = c.BaseTemplate
	if r := c.Resources; r != nil {
		out.Limits.CPU = r.CPU
		if r.MemoryMB != nil {
			if *r.MemoryMB < 64 || *r.MemoryMB > tenant.MaxPlanMemory>>20 {
				return out, httpapi.Invalid("config.resources.memory_mb must be 64 to %d", int64(tenant.MaxPlanMemory>>20))
			}
			out.Limits.Memory = new(*r.MemoryMB << 20)
		}
		if r.Timeout != nil {
			if *r.Timeout < 1 || *r.Timeout > int64(tenant.MaxEnvironmentTimeout/time.Second) {
				return out, httpapi.Invalid("config.resources.timeout must be 1 to %d seconds", int64(tenant.MaxEnvironmentTimeout/time.Second))
			}
			out.Timeout = new(time.Duration(*r.Timeout) * time.Second)
		}
	}
	out.Packages, out.Isolation = c.Packages.Domain(), (*execution.Isolation)(c.Isolation)
	out.Permissions, err = c.Permissions.Domain()
	out.Permissions.Profile = (*tenant.Profile)(c.PermissionProfile)
	return out, err
}

func environmentOf(e environments.Environment) OwnEnvironment {
	out := OwnEnvironment{ID: e.ID, Name: e.Name, CreatedAt: e.CreatedAt, PackageBuild: environmentwire.PackageBuildOf(e.Build), Config: EnvironmentConfig{
		Type: "cloud", Permissions: environmentwire.PermissionsOf(&e.Environment), Isolation: cmp.Or(e.Isolation, string(execution.IsolationRun)), Packages: environmentwire.PackagesOf(&e.Packages),
		Resources: Resources{CPU: e.Limits.CPU, MemoryMB: e.Limits.Memory >> 20}, BaseTemplate: httpapi.OrNull(e.Template), PermissionProfile: httpapi.OrNull(e.Profile),
	}}
	if e.Timeout > 0 {
		out.Config.Resources.Timeout = new(int64(e.Timeout / time.Second))
	}
	return out
}
