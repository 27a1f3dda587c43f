package file

import (
	"context"
	"io"
)

// System is the files of one sandbox, touched with the rights of its programs. Its
// methods may be called concurrently. What a caller may be told of a failure is a
// fault.Error; process.ErrGone says that the connection to the sandbox ended.
type System interface {
	// Stat describes what stands at a path; of a link, the link itself.
	Stat(ctx context.Context, path string) (Info, error)
	// List lists a folder.
	List(ctx context.Context, path string, o ListOptions) (Listing, error)
	// Glob finds the paths that match a pattern, at most limit of them; 0 is MaxEntries.
	Glob(ctx context.Context, cwd, pattern string, limit int) (Paths, error)
	// Mkdir makes a folder and those above it.
	Mkdir(ctx context.Context, path string) error
	Remove(ctx context.Context, path string, recursive bool) error
	Move(ctx context.Context, from, to string, replace bool) error

	// Read returns a file's content from offset on, at most limit bytes of it, or all if
	// limit is negative. Links are followed. ctx is for reading it, too.
	Read(ctx context.Context, path string, offset, limit int64) (Info, io.ReadCloser, error)
	// Create writes a file and makes the folders above it, and returns the size that the
	// file has then. Unless it appends, the file takes its place when all of it is written.
	Create(ctx context.Context, path string, o CreateOptions, content io.Reader) (size int64, err error)
	// Pack returns a file, or a folder with all below it, as a tar stream, with modes,
	// links and times. The entry of path itself is named ".". ctx is for reading it, too.
	Pack(ctx context.Context, path string) (Archive, error)
	// Unpack writes a tar stream to path, which is the name that the entry "." gets, and
	// below which all others go. Folders that are there stay and are added to; files are
	// replaced.
	Unpack(ctx context.Context, path string, archive io.Reader) (Counts, error)

	// Watch tells of changes of a path, and below it if recursive, until the Events are
	// closed or ctx ends.
	Watch(ctx context.Context, path string, recursive bool) (Events, error)
}

// Archive is a tar stream.
type Archive interface {
	io.ReadCloser
	// Counts says what was packed, once Read has returned io.EOF.
	Counts() Counts
}

// Events are changes of files, as they come. One goroutine at a time may use them, but
// Close may be called at any time.
type Events interface {
	Next() (Event, error)
	Close() error
}
