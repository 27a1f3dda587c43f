package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Packages installs the packages of environments into images.
type Packages interface {
	// CheckPackages returns an Invalid fault, whose message begins with the field of the request, if
	// packages cannot be installed over an image. An Unavailable fault means that this is unknown.
	CheckPackages(ctx context.Context, image string, s *requirement.Set) error
	// Admit refuses the image of a reference, by an Exhausted fault, to a tenant whose environments
	// have the most already. replaced is the reference that the environment had before.
	Admit(ctx context.Context, tenant, ref, replaced string) error
	// Build is how far the image of that reference is.
	Build(ctx context.Context, ref string) (requirement.Build, error)
	// Install has it made, also where that has failed before. It returns at once.
	Install(ctx context.Context, ref string) error
}

// PackagesChange says what to change of packages; nil leaves a list as it is. Lists are
// replaced.
type PackagesChange struct {
	Apt, Pip, NPM *[]string
}

func (c *PackagesChange) any() bool { return c.Apt != nil || c.Pip != nil || c.NPM != nil }

// changePackages makes the change, and checks it against the image that is there then.
func (a *Admin) changePackages(ctx context.Context, t Tenant, e *Environment, replaced string, c EnvironmentChange) error {
	if c.Packages.any() {
		s := e.Packages
		setList(&s.Apt, c.Packages.Apt)
		setList(&s.Pip, c.Packages.Pip)
		setList(&s.NPM, c.Packages.NPM)
		var err error
		if e.Packages, err = s.Normal(); err != nil {
			return invalid("packages.%s", err)
		}
	} else if c.Image == nil {
		return nil
	}
	switch {
	case e.Packages.Empty():
		return nil
	case !t.NetworkEnabled:
		return fault.New(fault.Forbidden, "packages: installing needs a network, which this tenant's policy does not allow: omit packages, or ask the operator to allow it (atoll tenant set %s --network)", t.Name)
	case a.cfg.Packages == nil:
		return invalid("packages: this server does not install packages; omit them")
	}
	if err := a.cfg.Packages.CheckPackages(ctx, e.Image, &e.Packages); err != nil {
		return err
	}
	return a.cfg.Packages.Admit(ctx, t.ID, e.RunImage(), replaced)
}

// provisioned reports whether an environment's image is made for it: it has packages, or is a
// variant of the default image.
func (a *Admin) provisioned(e *Environment) bool {
	return a.cfg.Packages != nil && (!e.Packages.Empty() || requirement.IsVariant(e.Image))
}

// install has an environment's packages installed.
func (a *Admin) install(ctx context.Context, e *Environment) error {
	if !a.provisioned(e) {
		return nil
	}
	return a.cfg.Packages.Install(ctx, e.RunImage())
}

// PackageBuild is how far the packages of an environment are, or its variant of the default image;
// nil if it has neither.
func (a *Admin) PackageBuild(ctx context.Context, e *Environment) (*requirement.Build, error) {
	if !a.provisioned(e) {
		return nil, nil
	}
	b, err := a.cfg.Packages.Build(ctx, e.RunImage())
	return &b, err
}
