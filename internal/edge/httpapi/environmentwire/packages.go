package environmentwire

import (
	"errors"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Packages are packages by what installs them.
type Packages struct {
	Apt []string `json:"apt" doc:"Packages of Debian."`
	Pip []string `json:"pip" doc:"Packages of Python."`
	NPM []string `json:"npm" doc:"Packages of npm."`
}

// PackagesChange is what can be changed of Packages; omitted fields stay unchanged.
type PackagesChange struct {
	Apt *[]string `json:"apt,omitzero" maxItems:"100" doc:"Replaces the list. Names of Debian's, such as jq, or with a version jq=1.7.1-3."`
	Pip *[]string `json:"pip,omitzero" maxItems:"100" doc:"Replaces the list. Names of Python packages, such as six, or with a version six==1.17.0 or bounds six>=1.16,<2."`
	NPM *[]string `json:"npm,omitzero" maxItems:"100" doc:"Replaces the list. Names of npm packages, such as left-pad or @scope/name, or with a version left-pad@1.3.0."`
}

// Domain gives the tenant package's form. c may be nil.
func (c *PackagesChange) Domain() tenant.PackagesChange {
	if c == nil {
		return tenant.PackagesChange{}
	}
	return tenant.PackagesChange{Apt: c.Apt, Pip: c.Pip, NPM: c.NPM}
}

// PackagesOf renders packages.
func PackagesOf(s *requirement.Set) Packages {
	return Packages{Apt: append([]string{}, s.Apt...), Pip: append([]string{}, s.Pip...), NPM: append([]string{}, s.NPM...)}
}

// PackageBuild is how far packages are installed, or a variant of the default image is made.
type PackageBuild struct {
	State     string     `json:"state" enum:"building,ready,failed" doc:"building: sandboxes wait for it, and return 503 if it takes long. failed: they return 409. Atoll tries a failed variant again later."`
	Log       []string   `json:"log" doc:"The last lines of the installers, or the steps of a variant; of a build that failed the last says why."`
	UpdatedAt *time.Time `json:"updated_at" doc:"null before it has begun."`
}

// PackageBuildOf renders a build; nil for none.
func PackageBuildOf(b *requirement.Build) *PackageBuild {
	if b == nil {
		return nil
	}
	out := &PackageBuild{State: string(b.State), Log: append([]string{}, b.Log...)}
	if !b.UpdatedAt.IsZero() {
		out.UpdatedAt = &b.UpdatedAt
	}
	return out
}

// InConfig prefixes the faults of packages with the field that contains packages in the bodies
// of tenants.
func InConfig(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !strings.HasPrefix(f.Msg, "packages") {
		return err
	}
	prefixed := *f
	prefixed.Msg = "config." + f.Msg
	return &prefixed
}
