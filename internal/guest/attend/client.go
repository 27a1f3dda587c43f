package attend

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
)

// Client is a conversation with one attendant. Its methods may be called
// concurrently. Errors that a caller may be told are fault.Errors.
type Client struct{}

// Mountpoint is where a sandbox with an attendant has the folder of MakeFolder
// mounted, which nobody but uid 0 of the sandbox may pass. Its Spec has Sockets.
const Mountpoint = "/.attend"

var errNothing = errors.New("this build has no attendant")

// MakeFolder makes the folder of the host that is to be mounted at Mountpoint.
func MakeFolder(path string) error { return errNothing }

// Dial listens in a folder of MakeFolder, has the attendant come with cue, which
// is the guest client's Attend, and returns when it has. It may be called again
// once the Client is closed, by this or a later process.
func Dial(ctx context.Context, folder string, cue func(context.Context) error) (*Client, error) {
	return nil, errNothing
}

// Done is closed when the conversation is over.
func (c *Client) Done() <-chan struct{} { return nil }

// Close ends the conversation, and nothing else: processes go on, and their
// output is kept. Nothing of the host is open in the sandbox when it returns.
func (c *Client) Close() error { return errNothing }

// Start starts a process.
func (c *Client) Start(ctx context.Context, spec ProcessSpec) (Process, error) {
	return Process{}, errNothing
}

// Run starts a process, follows it, and forgets it once its end was read: Start,
// Follow and Forget in one exchange. When the Output is closed earlier, or the
// conversation ends, the process goes on and stays.
func (c *Client) Run(ctx context.Context, spec ProcessSpec) (*Output, error) {
	return nil, errNothing
}

// Processes lists the processes that are not forgotten, oldest first.
func (c *Client) Processes(ctx context.Context) ([]Process, error) { return nil, errNothing }

// Process describes one process.
func (c *Client) Process(ctx context.Context, id ProcessID) (Process, error) {
	return Process{}, errNothing
}

// Follow returns the output of a process from a place on, until its end.
func (c *Client) Follow(ctx context.Context, id ProcessID, after Seq) (*Output, error) {
	return nil, errNothing
}

// Wait returns the end of a process when it has come.
func (c *Client) Wait(ctx context.Context, id ProcessID) (Exit, error) { return Exit{}, errNothing }

// Write writes to the input or terminal of a process, and returns when it is all
// in the pipe. n is how much was, if not all.
func (c *Client) Write(ctx context.Context, id ProcessID, data []byte) (n int, err error) {
	return 0, errNothing
}

// WriteControl writes to descriptor 3 of a process, as Write does.
func (c *Client) WriteControl(ctx context.Context, id ProcessID, data []byte) (n int, err error) {
	return 0, errNothing
}

// CloseInput ends the input of a process.
func (c *Client) CloseInput(ctx context.Context, id ProcessID) error { return errNothing }

// Resize changes the size of a process's terminal.
func (c *Client) Resize(ctx context.Context, id ProcessID, size Size) error { return errNothing }

// Signal sends a signal to a process, or to its process group.
func (c *Client) Signal(ctx context.Context, id ProcessID, sig syscall.Signal, group bool) error {
	return errNothing
}

// Kill ends a process and all it started, whatever group that has moved to.
func (c *Client) Kill(ctx context.Context, id ProcessID) error { return errNothing }

// Forget drops what is kept of a process that has ended.
func (c *Client) Forget(ctx context.Context, id ProcessID) error { return errNothing }

// Stat describes what stands at a path; of a link, the link itself.
func (c *Client) Stat(ctx context.Context, path string) (FileInfo, error) {
	return FileInfo{}, errNothing
}

// List lists a folder.
func (c *Client) List(ctx context.Context, path string, o ListOptions) (Listing, error) {
	return Listing{}, errNothing
}

// Glob returns the paths that a pattern matches: "*", "?", "[a-z]", "{a,b}", and
// "**" for any number of folders; names that begin with a dot like all others.
// A pattern that does not begin with / is for paths below cwd, and they are
// returned relative to it. At most limit are returned, MaxEntries if it is 0.
func (c *Client) Glob(ctx context.Context, cwd, pattern string, limit int) (Paths, error) {
	return Paths{}, errNothing
}

// Mkdir makes a folder and those above it. One that is there already will do.
func (c *Client) Mkdir(ctx context.Context, path string) error { return errNothing }

// Remove removes a file, a link or an empty folder; with all below it if recursive.
func (c *Client) Remove(ctx context.Context, path string, recursive bool) error { return errNothing }

// Move renames a file or folder, also to another file system. What has the new
// name is replaced only if replace says so.
func (c *Client) Move(ctx context.Context, from, to string, replace bool) error { return errNothing }

// Watch tells of changes of a path, and below it if recursive, until the Events
// are closed.
func (c *Client) Watch(ctx context.Context, path string, recursive bool) (*Events, error) {
	return nil, errNothing
}

// Read returns a file's content from offset on, at most limit bytes of it, or all
// if limit is negative. Links are followed.
func (c *Client) Read(ctx context.Context, path string, offset, limit int64) (FileInfo, io.ReadCloser, error) {
	return FileInfo{}, nil, errNothing
}

// Create writes a file and makes the folders above it, and returns the size that
// the file has then. Unless it appends, the file is new and takes its place at
// once, when all of it is written; a link is followed, and replaced what it leads to.
func (c *Client) Create(ctx context.Context, path string, o CreateOptions, content io.Reader) (size int64, err error) {
	return 0, errNothing
}

// Pack returns a file, or a folder with all below it, as a tar stream, with modes,
// links and times. The entry of path itself is named ".".
func (c *Client) Pack(ctx context.Context, path string) (*Archive, error) { return nil, errNothing }

// Unpack writes a tar stream to path, which is the name that the entry "." gets,
// and below which all others go: no entry leads out of it, whatever links there
// are. Folders that are there stay and are added to; files are replaced.
func (c *Client) Unpack(ctx context.Context, path string, archive io.Reader) (Counts, error) {
	return Counts{}, errNothing
}

// Connect connects to a TCP port of the sandbox's loopback interface, by IPv4 or
// else IPv6. CloseWrite of the connection ends one direction alone.
func (c *Client) Connect(ctx context.Context, port uint16) (net.Conn, error) { return nil, errNothing }

// Output is the output of a process, as it comes.
type Output struct{}

// Process is what it was when Run or Follow was answered.
func (o *Output) Process() Process { return Process{} }

// Next returns the next piece of output. After the last one, when the process has
// ended, it returns io.EOF, and Exit says how.
func (o *Output) Next() (Chunk, error) { return Chunk{}, errNothing }

// Exit is the end of the process, once Next has returned io.EOF.
func (o *Output) Exit() Exit { return Exit{} }

// Close stops following. The process goes on.
func (o *Output) Close() error { return errNothing }

// Events are changes of files, as they come.
type Events struct{}

// Next returns the next change.
func (e *Events) Next() (Event, error) { return Event{}, errNothing }

// Close stops watching.
func (e *Events) Close() error { return errNothing }

// Archive is a tar stream.
type Archive struct{}

func (a *Archive) Read(p []byte) (int, error) { return 0, errNothing }

// Close stops packing.
func (a *Archive) Close() error { return errNothing }

// Counts says what was packed, once Read has returned io.EOF.
func (a *Archive) Counts() Counts { return Counts{} }
