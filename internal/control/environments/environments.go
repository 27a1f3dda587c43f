// Package environments provides the operations on environments: those of a tenant on its own,
// and those of an operator on any tenant's.
package environments

import (
	"context"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Service creates, changes and deletes environments. Every rejection is a *fault.Error.
type Service struct {
	Tenants *tenant.Admin
	// Sandboxes may be nil if no operator changes environments.
	Sandboxes Sandboxes
}

// Sandboxes are the named sandboxes of all tenants; a *directory.Directory implements it.
type Sandboxes interface {
	// LackNetwork counts an environment's sandboxes that a restart would give more of the
	// network.
	LackNetwork(ctx context.Context, tenantID tenant.ID, environment string, policy runtime.NetworkPolicy) (int, error)
}

// Environment is an environment with the build of its image.
type Environment struct {
	tenant.Environment
	Build *requirement.Build // nil if the environment uses an image as it is
}

// Create creates an environment of the caller's tenant, from the default template unless c names
// another. Spaces in name become hyphens.
func (s *Service) Create(ctx context.Context, by *tenant.Principal, name string, c tenant.EnvironmentChange) (Environment, error) {
	fitFiles(&c.Limits, s.Tenants.Limits())
	if c.Template == nil {
		c.Template = new("")
	}
	e, err := s.Tenants.CreateOwnEnvironment(ctx, by.Key.ID, by.Tenant.ID, hyphenated(name), c)
	return s.built(ctx, e, err)
}

// Get returns an environment of the caller's tenant by its id or name.
func (s *Service) Get(ctx context.Context, by *tenant.Principal, idOrName string) (Environment, error) {
	e, err := s.Find(ctx, by, idOrName)
	return s.built(ctx, e, err)
}

// List returns the environments of the caller's tenant, without builds.
func (s *Service) List(ctx context.Context, by *tenant.Principal) ([]tenant.Environment, error) {
	return s.Tenants.Environments(ctx, by.Tenant.ID)
}

// Builds adds the builds of packages to a page of environments.
func (s *Service) Builds(ctx context.Context, page []tenant.Environment) ([]Environment, error) {
	out := make([]Environment, len(page))
	for i, e := range page {
		out[i].Environment = e
		if e.Packages.Empty() {
			continue
		}
		var err error
		if out[i], err = s.built(ctx, e, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Change changes an environment that Find has returned. Spaces in a new name become hyphens.
func (s *Service) Change(ctx context.Context, by *tenant.Principal, e *tenant.Environment, c tenant.EnvironmentChange) (Environment, error) {
	fitFiles(&c.Limits, e.Limits)
	if c.Name != nil {
		c.Name = new(hyphenated(*c.Name))
	}
	changed, err := s.Tenants.ChangeEnvironment(ctx, by.Tenant.ID, e.ID, c)
	return s.built(ctx, changed, err)
}

// Delete deletes an environment of the caller's tenant and returns its id. The deletion fails with
// a Conflict while a valid key is bound to the environment.
func (s *Service) Delete(ctx context.Context, by *tenant.Principal, idOrName string) (id string, err error) {
	e, err := s.Find(ctx, by, idOrName)
	if err != nil {
		return "", err
	}
	return e.ID, s.Tenants.DeleteEnvironment(ctx, by.Key.ID, by.Tenant.ID, e.ID)
}

// Find returns an environment of the caller's tenant without its build. It returns the same NotFound
// fault for all names that the tenant does not use.
func (s *Service) Find(ctx context.Context, by *tenant.Principal, idOrName string) (tenant.Environment, error) {
	unknown := fault.New(fault.NotFound, "environment %.80q not found", idOrName)
	if !tenant.Name.MatchString(idOrName) {
		return tenant.Environment{}, unknown
	}
	e, err := s.Tenants.Environment(ctx, by.Tenant.ID, idOrName)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return e, unknown
	}
	return e, err
}

// built adds the build to an environment that a call returned with err.
func (s *Service) built(ctx context.Context, e tenant.Environment, err error) (Environment, error) {
	if err != nil {
		return Environment{}, err
	}
	build, err := s.Tenants.PackageBuild(ctx, &e)
	return Environment{e, build}, err
}

// fitFiles shrinks the file systems in memory if c changes memory and they would leave programs
// less than 3/8 of it. l are the limits before the change.
func fitFiles(c *tenant.LimitsChange, l runtime.Limits) {
	if c.Memory != nil && l.Root+l.Tmp+l.Shm > *c.Memory*5/8 {
		c.Root, c.Tmp, c.Shm = new(*c.Memory/4), new(*c.Memory/4), new(*c.Memory/8)
	}
}

var spaces = regexp.MustCompile(` +`)

// hyphenated turns a name with spaces, which the contract allows, into one of ours.
func hyphenated(name string) string { return spaces.ReplaceAllString(strings.TrimSpace(name), "-") }
