package thread

import (
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Home is what one saved state of a thread holds. It never changes: an edit returns
// another one. Its methods may be called concurrently. Links are not followed.
type Home interface {
	// ThreadState is the state as the result of an execution carries it.
	ThreadState() execution.ThreadState
	Stat(path string) (Entry, error)
	// List lists a folder.
	List(path string) ([]Entry, error)
	// Open reads limit bytes of a file from an offset on, or to its end with a limit
	// below 0.
	Open(ctx context.Context, path string, offset, limit int64) (io.ReadCloser, error)
	// WriteFile returns a home in which a file holds what r gives, and all else is the
	// same. An error of r is returned as it is.
	WriteFile(ctx context.Context, path string, r io.Reader, limit Quota) (Home, error)
	// Remove returns a home without a file, or a folder and all that is in it.
	Remove(ctx context.Context, path string) (Home, error)
	// Export writes all of it as a tar archive.
	Export(ctx context.Context, w io.Writer) error
}

// Homes keeps the saved states of threads' homes. What is equal in several of a tenant's
// is stored once.
type Homes interface {
	// Load returns a state; "" is an empty home.
	Load(ctx context.Context, tenant, state string) (Home, error)
	// Import returns a home that holds what a tar archive does.
	Import(ctx context.Context, tenant string, r io.Reader, limit Quota) (Home, error)
	// Collect removes what no state that live returns refers to.
	Collect(ctx context.Context, tenant string, live func(context.Context) ([]string, error)) (Collected, error)
}
