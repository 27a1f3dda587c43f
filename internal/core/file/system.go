package file

import (
	"context"
	"io"
)

// System accesses the files of one sandbox with the permissions of its programs. It is safe for
// concurrent use. Errors that a caller may see are *fault.Error; process.ErrGone means that the
// connection to the sandbox ended.
type System interface {
	// Stat describes the file at a path. It does not follow links.
	Stat(ctx context.Context, path string) (Info, error)
	// List lists a directory.
	List(ctx context.Context, path string, o ListOptions) (Listing, error)
	// Glob returns up to limit paths that match a pattern; 0 means MaxEntries.
	Glob(ctx context.Context, cwd, pattern string, limit int) (Paths, error)
	// Mkdir creates a directory and its parents.
	Mkdir(ctx context.Context, path string) error
	Remove(ctx context.Context, path string, recursive bool) error
	Move(ctx context.Context, from, to string, replace bool) error

	// Read returns up to limit bytes of a file from offset; a negative limit reads to the end. It
	// follows links. Cancelling ctx also ends reads of the content.
	Read(ctx context.Context, path string, offset, limit int64) (Info, io.ReadCloser, error)
	// Create writes a file, creates its parent directories, and returns the file's new size. Unless
	// it appends, it replaces the file only after writing all of the content.
	Create(ctx context.Context, path string, o CreateOptions, content io.Reader) (size int64, err error)
	// Pack returns a file, or a directory with its contents, as a tar stream with modes, links and
	// times. The entry of path itself is named ".". Cancelling ctx also ends reads of the stream.
	Pack(ctx context.Context, path string) (Archive, error)
	// Unpack extracts a tar stream to path; the entry "." becomes path. It merges into existing
	// directories and replaces files.
	Unpack(ctx context.Context, path string, archive io.Reader) (Counts, error)

	// Watch reports changes of a path, and with recursive of everything below it, until the caller
	// closes the Events or ctx ends.
	Watch(ctx context.Context, path string, recursive bool) (Events, error)
}

// Archive is a tar stream.
type Archive interface {
	io.ReadCloser
	// Counts returns what the archive contains, valid after Read has returned io.EOF.
	Counts() Counts
}

// Events delivers file changes as they happen. Only one goroutine at a time may use it, but Close
// may be called at any time.
type Events interface {
	Next() (Event, error)
	Close() error
}
