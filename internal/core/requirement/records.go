package requirement

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// DimensionImages names the limit of a tenant's images with packages, for refusals.
const DimensionImages = "package_images"

// Records answers questions about the packages of environments from the records of all executors. A
// gateway needs no executor for them.
type Records struct {
	Store     Store
	PerTenant int // images with packages that the environments of one tenant may have; 0 for any number
}

// Admit returns an Exhausted fault if the tenant's environments already have the maximum number of
// images with packages. ref is the reference of an environment's image, and replaced the one that it
// had before.
func (r *Records) Admit(ctx context.Context, tenant, ref, replaced string) error {
	if r.PerTenant == 0 || ref == replaced {
		return nil
	}
	all, err := r.Store.Wanted(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range all {
		switch of := all[i].Ref(); {
		case all[i].Set.Empty() || !slices.Contains(all[i].Tenants, tenant):
		case of == ref:
			return nil
		case of != replaced:
			n++
		}
	}
	if n >= r.PerTenant {
		return fault.Limit(DimensionImages, time.Time{}, "packages: the environments of this tenant have %d different sets of packages, which is its limit (package_images_per_tenant). Use a set that another environment has, or take the packages away from one", n)
	}
	return nil
}

// Build returns the progress of the image of a reference: a build that is ready, or else any. If the
// packages wait for a variant of the default image, it returns the build of the variant. An image that
// no executor has begun counts as building.
func (r *Records) Build(ctx context.Context, ref string) (Build, error) {
	all, err := r.Store.Builds(ctx, ref)
	if err != nil {
		return Build{}, err
	}
	b := Closest(ref, "", all)
	if b.State != Building || !IsRef(ref) {
		return b, nil
	}
	wanted, err := r.Store.Wanted(ctx)
	if err != nil {
		return Build{}, err
	}
	for i := range wanted {
		if !IsVariant(wanted[i].Image) || wanted[i].Ref() != ref {
			continue
		}
		if below, err := r.Build(ctx, wanted[i].Image); err != nil || below.State != Ready {
			return below, err
		}
	}
	return b, nil
}

// Install deletes the failed builds of a reference. Executors look for missing images every few seconds,
// and then build it again. A variant of the default image keeps its pause after a failure.
func (r *Records) Install(ctx context.Context, ref string) error {
	if IsVariant(ref) {
		return nil
	}
	return r.Store.Retry(ctx, ref)
}

// Closest returns the build of a reference by an executor, or else a build by another one, if possible
// a ready one. all lists the builds of the reference. If it is empty, the image counts as building.
func Closest(ref, executor string, all []Build) Build {
	b := Build{Ref: ref, State: Building}
	for i := range all {
		if all[i].Executor == executor {
			return all[i]
		}
		if b.State != Ready {
			b = all[i]
		}
	}
	return b
}
