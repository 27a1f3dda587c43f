package environment

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// OwnEnvironment is an environment as its tenant sees it.
type OwnEnvironment struct {
	ID        string            `json:"id" doc:"env_ and 16 hexadecimal digits."`
	Name      string            `json:"name"`
	Config    EnvironmentConfig `json:"config" doc:"Its resources and permissions."`
	CreatedAt time.Time         `json:"created_at"`

	PackageBuild *PackageBuild `json:"package_build" doc:"How far the image of the environment is: config.packages, or a variant of the default image such as default+browser; null without both."`
}

// EnvironmentConfig is what programs of an environment get and may do.
type EnvironmentConfig struct {
	Type              string      `json:"type" enum:"cloud"`
	BaseTemplate      *string     `json:"base_template" doc:"null for an image that the operator chose."`
	Resources         Resources   `json:"resources" doc:"Processor, memory and time."`
	PermissionProfile *string     `json:"permission_profile" doc:"The profile that permissions started from; null for none."`
	Permissions       Permissions `json:"permissions" doc:"Permissions of programs: network, files and processes."`
	Isolation         string      `json:"isolation" enum:"run,key" doc:"Whether each execution has its own kernel (run), or the executions of a key share one (key)."`
	Packages          Packages    `json:"packages" doc:"Packages that are installed in the image."`
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
	Type              *string            `json:"type,omitzero" enum:"cloud"`
	BaseTemplate      *string            `json:"base_template,omitzero" doc:"One of the operator's templates; the default image if omitted."`
	Resources         *ResourcesChange   `json:"resources,omitzero" doc:"Processor, memory and time."`
	PermissionProfile *string            `json:"permission_profile,omitzero" enum:"unrestricted,standard,restricted,isolated" doc:"Starts again from the rules of a profile, which permissions then change. A new environment starts from standard."`
	Permissions       *PermissionsChange `json:"permissions,omitzero" doc:"Permissions of programs: network, files and processes."`
	Isolation         *string            `json:"isolation,omitzero" enum:"run,key" doc:"run: each execution has its own kernel. key: executions of one key use the same kernel one after another, each with separate processes, files, memory and sockets that Atoll deletes afterwards; docs/concepts/security.md lists what they share. key requires permissions without network and rules."`
	Packages          *PackagesChange    `json:"packages,omitzero" doc:"Packages to install in the image, once, from the registries that the operator has configured. Setting them again has what failed tried again."`
}

// ResourcesChange changes Resources.
type ResourcesChange struct {
	CPU      *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, such as 0.5."`
	MemoryMB *int64   `json:"memory_mb,omitzero" minimum:"64" doc:"MiB of memory."`
	Timeout  *int64   `json:"timeout,omitzero" minimum:"1" maximum:"86400" doc:"Seconds that a program may run."`
}

func (c *ConfigChange) domain(limits runtime.Limits) (out tenant.EnvironmentChange, err error) {
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
			memory := *r.MemoryMB << 20
			out.Limits.Memory = &memory
			// Files in memory must leave room for programs.
			if limits.Root+limits.Tmp+limits.Shm > memory*5/8 {
				out.Limits.Root, out.Limits.Tmp, out.Limits.Shm = new(memory/4), new(memory/4), new(memory/8)
			}
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
	if c.PermissionProfile != nil {
		profile := tenant.Profile(*c.PermissionProfile)
		out.Permissions.Profile = &profile
	}
	return out, err
}

// IsolationOf is what executions of an environment share.
func IsolationOf(e *tenant.Environment) string {
	if e.Isolation == "" {
		return string(execution.IsolationRun)
	}
	return e.Isolation
}

func environmentOf(e tenant.Environment) OwnEnvironment {
	out := OwnEnvironment{ID: e.ID, Name: e.Name, CreatedAt: e.CreatedAt, Config: EnvironmentConfig{
		Type: "cloud", Permissions: RulesOf(&e), Isolation: IsolationOf(&e), Packages: PackagesOf(&e.Packages),
		Resources: Resources{CPU: e.Limits.CPU, MemoryMB: e.Limits.Memory >> 20},
	}}
	if e.Template != "" {
		out.Config.BaseTemplate = &e.Template
	}
	if e.Profile != "" {
		out.Config.PermissionProfile = &e.Profile
	}
	if e.Timeout > 0 {
		out.Config.Resources.Timeout = new(int64(e.Timeout / time.Second))
	}
	return out
}
