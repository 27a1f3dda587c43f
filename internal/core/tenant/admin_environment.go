package tenant

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// EnvironmentChange changes an environment; nil keeps a field.
type EnvironmentChange struct {
	Name        *string
	Image       *string
	Limits      LimitsChange
	Variables   VariablesChange
	Permissions PermissionsChange
	Template    *string // also sets Image
	Timeout     *time.Duration
	Isolation   *execution.Isolation
	Packages    PackagesChange
}

// LimitsChange changes limits; nil keeps a field.
type LimitsChange struct {
	CPU            *float64
	Memory         *int64
	Processes      *int
	OpenFiles      *int
	Root, Tmp, Shm *int64
	Inodes         *int
}

// CreateEnvironment creates an environment, with the image named default and the server's limits
// unless c sets others. It records a PolicyEvent by actor.
func (a *Admin) CreateEnvironment(ctx context.Context, actor, tenant, name string, c EnvironmentChange) (Environment, error) {
	defer a.changing()()
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return Environment{}, err
	}
	e := Environment{ID: NewID("env"), Tenant: t.ID, Limits: a.cfg.Limits, CreatedAt: now()}
	c.Name = &name
	if c.Image == nil && c.Template == nil {
		c.Image = new("default")
	}
	if err := a.changeEnvironment(ctx, t, &e, c); err != nil {
		return Environment{}, err
	}
	if err := a.store.CreateEnvironment(ctx, e, e.made(actor)); err != nil {
		return Environment{}, err
	}
	if err := a.install(ctx, &e); err != nil {
		return Environment{}, err
	}
	return a.store.Environment(ctx, t.ID, e.ID)
}

// MaxOwnEnvironments limits a tenant's environments when the tenant creates one itself.
const MaxOwnEnvironments = 1000

// CreateOwnEnvironment is CreateEnvironment for a tenant's own request. It uses the contract's
// defaults, which include a network.
func (a *Admin) CreateOwnEnvironment(ctx context.Context, actor, tenant, name string, c EnvironmentChange) (Environment, error) {
	if c.Permissions.Profile == nil {
		c.Permissions.Profile = new(StandardUse)
	}
	all, err := a.Environments(ctx, tenant)
	if err != nil {
		return Environment{}, err
	}
	if len(all) >= MaxOwnEnvironments {
		return Environment{}, fault.Limit("environments", time.Time{}, "this tenant has reached its limit of %d environments; delete some first", len(all))
	}
	return a.CreateEnvironment(ctx, actor, tenant, name, c)
}

// Limits returns the limits of an environment that sets none.
func (a *Admin) Limits() runtime.Limits { return a.cfg.Limits }

// ChangeEnvironment changes an environment. Running executions keep their settings.
func (a *Admin) ChangeEnvironment(ctx context.Context, tenant, idOrName string, c EnvironmentChange) (Environment, error) {
	defer a.changing()()
	t, err := a.Changeable(ctx, tenant)
	if err != nil {
		return Environment{}, err
	}
	e, err := a.store.Environment(ctx, t.ID, idOrName)
	if err != nil {
		return Environment{}, err
	}
	if err := a.changeEnvironment(ctx, t, &e, c); err != nil {
		return Environment{}, err
	}
	if err := a.store.UpdateEnvironment(ctx, e); err != nil {
		return Environment{}, err
	}
	if c.Packages.any() || c.Image != nil || c.Template != nil {
		if err := a.install(ctx, &e); err != nil {
			return Environment{}, err
		}
	}
	return a.store.Environment(ctx, t.ID, e.ID)
}

// Environment returns an environment by its id or name.
func (a *Admin) Environment(ctx context.Context, tenant, idOrName string) (Environment, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return Environment{}, err
	}
	return a.store.Environment(ctx, t.ID, idOrName)
}

// Environments returns a tenant's environments.
func (a *Admin) Environments(ctx context.Context, tenant string) ([]Environment, error) {
	t, err := a.find(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return a.store.Environments(ctx, t.ID)
}

// made returns the event of a created environment.
func (e *Environment) made(actor string) PolicyEvent {
	return PolicyEvent{Tenant: e.Tenant, Actor: actor, Field: "environment/" + e.Name, New: e.Image, CreatedAt: now()}
}

// DeleteEnvironment deletes an environment that no valid key is bound to. It records a PolicyEvent
// by actor.
func (a *Admin) DeleteEnvironment(ctx context.Context, actor, tenant, idOrName string) error {
	defer a.changing()()
	e, err := a.Environment(ctx, tenant, idOrName)
	if err != nil {
		return err
	}
	deleted := PolicyEvent{Tenant: e.Tenant, Actor: actor, Field: "environment/" + e.Name, Old: e.Image, CreatedAt: now()}
	return a.store.DeleteEnvironment(ctx, e.Tenant, e.ID, deleted)
}

// MaxEnvironmentTimeout is the largest timeout limit of an environment. Plan and server may set
// lower ones.
const MaxEnvironmentTimeout = 24 * time.Hour

// DefaultTemplate is the only template of an installation that configures none.
const DefaultTemplate = "tpl_code_interpreter"

// templateImage returns the image of a template; "" is the default template.
func (a *Admin) templateImage(template string) (string, error) {
	known := a.cfg.Templates
	if len(known) == 0 {
		known = map[string]string{DefaultTemplate: a.cfg.Image}
	}
	if image, ok := known[template]; ok {
		return image, nil
	}
	if template == "" {
		return a.cfg.Image, nil
	}
	return "", invalid("base_template: unknown template %.100q; this server has %s", template, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// changeEnvironment applies the change. It validates only what c changes, so that a deleted image
// or a smaller plan does not block replacing a secret.
func (a *Admin) changeEnvironment(ctx context.Context, t Tenant, e *Environment, c EnvironmentChange) error {
	made, replaced := e.Name == "", e.RunImage()
	if c.Name != nil {
		if err := checkName("environment", *c.Name); err != nil {
			return err
		}
		e.Name = *c.Name
	}
	if c.Template != nil {
		image, err := a.templateImage(*c.Template)
		if err != nil {
			return err
		}
		c.Image, e.Template = &image, *c.Template
	} else if c.Image != nil {
		e.Template = ""
	}
	if c.Image != nil {
		e.Image = *c.Image
		if err := a.cfg.CheckImage(ctx, e.Image); err != nil {
			return err
		}
	}
	if err := a.changePackages(ctx, t, e, replaced, c); err != nil {
		return err
	}
	if made || c.Limits != (LimitsChange{}) {
		c.Limits.apply(&e.Limits)
		if made {
			c.Limits.shrinkFiles(&e.Limits)
		}
		if err := checkLimits(e.Limits); err != nil {
			return err
		}
		plan, err := a.store.Plan(ctx, t.Plan)
		if err != nil {
			return err
		}
		if err := plan.Allows(e); err != nil {
			return err
		}
	}
	if c.Timeout != nil {
		if *c.Timeout < time.Second || *c.Timeout > MaxEnvironmentTimeout {
			return invalid("timeout must be 1 to %d seconds", MaxEnvironmentTimeout/time.Second)
		}
		e.Timeout = *c.Timeout
	}
	if err := changePermissions(t, e, c.Permissions); err != nil {
		return err
	}
	if err := a.changeIsolation(ctx, t, e, c); err != nil {
		return err
	}
	if a.cfg.CheckNetwork != nil && c.Permissions != (PermissionsChange{}) {
		if err := a.cfg.CheckNetwork(e.Permissions.Network); err != nil {
			return err
		}
	}
	return c.Variables.apply(&e.Env, &e.Secrets, &e.Bound)
}

func (c LimitsChange) apply(l *runtime.Limits) {
	set(&l.CPU, c.CPU)
	set(&l.Memory, c.Memory)
	set(&l.Processes, c.Processes)
	set(&l.OpenFiles, c.OpenFiles)
	set(&l.Root, c.Root)
	set(&l.Tmp, c.Tmp)
	set(&l.Shm, c.Shm)
	set(&l.Inodes, c.Inodes)
}

// shrinkFiles shrinks a new environment's file systems as ShrinkFiles does, except for the sizes
// that c sets.
func (c LimitsChange) shrinkFiles(l *runtime.Limits) {
	l.ShrinkFiles()
	set(&l.Root, c.Root)
	set(&l.Tmp, c.Tmp)
	set(&l.Shm, c.Shm)
}

// Upper limits of an environment's limits on any machine. A machine's resources may set lower ones.
const (
	MaxProcesses = 1 << 20
	MaxOpenFiles = 1 << 20
	MaxInodes    = 1 << 30
)

// checkLimits checks upper limits first, so that sums of sizes cannot overflow.
func checkLimits(l runtime.Limits) error {
	switch {
	case !(l.CPU > 0 && l.CPU <= MaxPlanCPU):
		return invalid("limits.cpu must be above 0 and at most %d cores", MaxPlanCPU)
	case l.Memory > MaxPlanMemory:
		return invalid("limits.memory must be at most %d bytes", int64(MaxPlanMemory))
	case l.Root > l.Memory || l.Tmp > l.Memory || l.Shm > l.Memory:
		return invalid("limits: root_size, tmp_size and shm_size are stored in memory and together must stay below it")
	case l.Processes > MaxProcesses:
		return invalid("limits.processes must be at most %d", MaxProcesses)
	case l.OpenFiles > MaxOpenFiles:
		return invalid("limits.open_files must be at most %d", MaxOpenFiles)
	case l.Inodes > MaxInodes:
		return invalid("limits.inodes must be at most %d", MaxInodes)
	}
	if err := l.Validate(); err != nil {
		return invalid("limits: %s", err)
	}
	return nil
}
