// Package imagequery declares the questions about images and packages that gateways ask, and sends
// them to executors that run as separate processes.
package imagequery

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Images answers questions about the images of executors. Arguments and results are names in the image
// store, unless a method says otherwise. Every method can return an Unavailable fault, which means that
// the answer is unknown. The caller may ask again.
type Images interface {
	// CheckImage returns an Invalid fault if an environment cannot use an image.
	CheckImage(ctx context.Context, name string) error
	// CheckPackages returns an Invalid fault, whose message begins with the field of the request, if
	// packages cannot be installed over an image. The set is normalized.
	CheckPackages(ctx context.Context, image string, s *requirement.Set) error
	// Resolve returns the name of the image that a caller means by asked, such as "node:22", and an
	// Invalid fault if the store has none. It imports nothing.
	Resolve(ctx context.Context, asked string) (string, error)
	// Prepare requests the image of an environment with extras of the default image. It does not wait
	// for the image, but returns a warning while the executor makes it; "" if the image exists or
	// cannot be made. image may be a reference, see requirement.Ref.
	Prepare(ctx context.Context, image string, extras []string) (string, error)
	// Lacking explains to an agent why its sandbox, of an environment with this image, lacks extras; ""
	// if that is unknown. image may be a reference.
	Lacking(ctx context.Context, image string, extras []string) (string, error)
}
