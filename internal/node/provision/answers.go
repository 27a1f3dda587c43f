package provision

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/imagequery"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

// Answers answers the questions of gateways from the images of this machine.
type Answers struct {
	Aliases     *image.Aliases
	Provisioner *Provisioner // nil if this server installs no packages and makes no variants
	Variants    bool         // this server makes missing variants of the default image
}

var _ imagequery.Images = (*Answers)(nil)

// CheckImage implements imagequery.Images.
func (a *Answers) CheckImage(_ context.Context, name string) error {
	if strings.HasPrefix(name, requirement.ImagePrefix) {
		return fault.New(fault.Invalid, "image %q was built for the packages of environments and is deleted with them: use its base image, and packages", name)
	}
	if requirement.IsVariant(name) {
		return CheckVariant(a.Aliases.Store, a.Variants, name)
	}
	if _, err := a.Aliases.Store.Get(name); err != nil {
		return a.Aliases.NotHere(name, err)
	}
	return nil
}

// CheckVariant returns an Invalid fault if an environment cannot have a variant of the default image:
// the store lacks it, and this server makes none.
func CheckVariant(images interface {
	Get(name string) (*image.Image, error)
}, makes bool, name string) error {
	_, err := images.Get(name)
	if err == nil || makes {
		return nil
	}
	return fault.Wrap(fault.Invalid, err, fmt.Sprintf("image %q is not on this server, and its setting image_variants does not let it make one: ask the operator to run '%s' on the server", name, requirement.VariantCommand(name)))
}

// CheckPackages implements imagequery.Images.
func (a *Answers) CheckPackages(_ context.Context, name string, s *requirement.Set) error {
	if a.Provisioner == nil {
		return fault.New(fault.Invalid, "packages: this server does not install packages; omit them")
	}
	if err := a.Provisioner.Check(name, s); err != nil {
		return fault.New(fault.Invalid, "packages.%s", err)
	}
	return nil
}

// Resolve implements imagequery.Images.
func (a *Answers) Resolve(_ context.Context, asked string) (string, error) {
	return a.Aliases.Resolve(asked)
}

// Prepare implements imagequery.Images.
func (a *Answers) Prepare(ctx context.Context, name string, extras []string) (string, error) {
	if a.Provisioner == nil {
		return "", nil
	}
	return a.Provisioner.Prepare(ctx, name, extras)
}

// Lacking implements imagequery.Images.
func (a *Answers) Lacking(_ context.Context, name string, extras []string) (string, error) {
	if a.Provisioner == nil {
		return "", nil
	}
	return a.Provisioner.Lacking(name, extras), nil
}
