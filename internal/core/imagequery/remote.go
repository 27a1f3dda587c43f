package imagequery

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Arguments of the calls.
type (
	packagesQuery struct {
		Image string
		Set   requirement.Set
	}
	extrasQuery struct {
		Image  string
		Extras []string
	}
)

// The calls from gateways to executors. Each executor answers for its own images.
const (
	checkImage    remote.Call[string, remote.None]        = "image.check"
	checkPackages remote.Call[packagesQuery, remote.None] = "image.check_packages"
	resolve       remote.Call[string, string]             = "image.resolve"
	prepare       remote.Call[extrasQuery, string]        = "image.prepare"
	lacking       remote.Call[extrasQuery, string]        = "image.lacking"
)

// Handlers answers the calls of gateways from the images of this executor.
func Handlers(images Images) remote.Handlers {
	h := remote.Handlers{}
	checkImage.Handle(h, func(ctx context.Context, _, name string) (remote.None, error) {
		return remote.None{}, images.CheckImage(ctx, name)
	})
	checkPackages.Handle(h, func(ctx context.Context, _ string, q packagesQuery) (remote.None, error) {
		return remote.None{}, images.CheckPackages(ctx, q.Image, &q.Set)
	})
	resolve.Handle(h, func(ctx context.Context, _, asked string) (string, error) { return images.Resolve(ctx, asked) })
	prepare.Handle(h, func(ctx context.Context, _ string, q extrasQuery) (string, error) {
		return images.Prepare(ctx, q.Image, q.Extras)
	})
	lacking.Handle(h, func(ctx context.Context, _ string, q extrasQuery) (string, error) {
		return images.Lacking(ctx, q.Image, q.Extras)
	})
	return h
}
