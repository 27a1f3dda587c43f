package thread

import (
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Home is one saved state of a thread's home directory. It is immutable: an edit returns another
// Home. It is safe for concurrent use. It does not follow links.
type Home interface {
	// ThreadState returns the state in the form that an execution's result carries.
	ThreadState() execution.ThreadState
	Stat(path string) (Entry, error)
	// List lists a directory.
	List(path string) ([]Entry, error)
	// Open reads limit bytes of a file from offset; a negative limit reads to the end.
	Open(ctx context.Context, path string, offset, limit int64) (io.ReadCloser, error)
	// WriteFile returns a home with one file replaced by the contents of r. It returns an error of
	// r unchanged.
	WriteFile(ctx context.Context, path string, r io.Reader, limit Quota) (Home, error)
	// Remove returns a home without a file, or without a directory and its contents.
	Remove(ctx context.Context, path string) (Home, error)
	// Export writes the home as a tar archive.
	Export(ctx context.Context, w io.Writer) error
}

// Homes stores the saved states of threads' homes. It deduplicates equal data within a tenant.
type Homes interface {
	// Load returns a state; "" is an empty home.
	Load(ctx context.Context, tenant, state string) (Home, error)
	// Import returns a home with the contents of a tar archive.
	Import(ctx context.Context, tenant string, r io.Reader, limit Quota) (Home, error)
	// Collect deletes data that no state returned by live references.
	Collect(ctx context.Context, tenant string, live func(context.Context) ([]string, error)) (Collected, error)
}
