// Package client is the host's side of the conversation with the attendant of a
// sandbox: the process, beside process 1, that starts and feeds programs, keeps
// their output, reads and writes files, and connects to ports, for as long as the
// sandbox lives.
//
// What comes from an attendant was written by whoever controls the sandbox. A
// Client checks every length, number and order, allocates nothing by a length it
// was told, and ends the conversation with ErrProtocol at the first thing that no
// attendant says. docs/guest-protocol.md describes the protocol.
//
// Paths, arguments and variables are bytes without a NUL, not necessarily UTF-8.
package client

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

var (
	// ErrGone says that the conversation is over: the Client was closed, or the
	// sandbox or its attendant ended. What runs in the sandbox goes on if that
	// does; Dial again.
	ErrGone = errors.New("the conversation with the sandbox is over")
	// ErrProtocol says that the attendant said what none says. Its sandbox is to
	// be destroyed.
	ErrProtocol = errors.New("the attendant broke the protocol")
)

// Bounds of what the attendant keeps.
const (
	MaxRing      = 1 << 20  // bytes of output of one process
	MaxRings     = 16 << 20 // bytes of output of all processes together
	MaxProcesses = 256      // processes that run, and as many that have ended
)

// Stream is one of the outputs of a process.
type Stream uint8

const (
	Stdout   Stream = iota
	Stderr          //
	Terminal        // of a process that has one, instead of the two above
	Control         // what it writes to descriptor 4
)

func (s Stream) String() string {
	return [...]string{"stdout", "stderr", "terminal", "control"}[s&3]
}

// Seq is a place in the output of a process: how many bytes of all its streams
// came before it.
type Seq int64

// ProcessID names a process within its sandbox, for good: 1 to 64 letters,
// digits, '-' and '_'.
type ProcessID string

// Size is that of a terminal.
type Size struct{ Rows, Columns uint16 }

// Limits are resource limits of a process; zero leaves the default of the sandbox.
type Limits struct {
	Processes int // tasks of the unprivileged user, in the whole sandbox
	OpenFiles int // descriptors of one process
}

// ProcessSpec says how a process is started: as the unprivileged user, in a
// session of its own.
type ProcessSpec struct {
	ID       ProcessID     // "" for a new one; asked for twice, it is started once
	Argv     []string      // a program without a slash in its name is looked for in the PATH of Env
	Shell    string        // instead of Argv, a text for bash, or sh where there is no bash
	Env      []string      // all variables, as "NAME=value"
	Dir      string        // "" for the home directory
	Input    bool          // it has an input to Write to, instead of /dev/null
	Terminal *Size         // it has a terminal as input and outputs
	Control  bool          // descriptors 3, to read what WriteControl sends, and 4, for stream Control
	Timeout  time.Duration // ends it and all it started; zero sets none
	Lossless bool          // while somebody follows it waits when its output is not taken, instead of losing some
	Patient  bool          // the same while nobody follows: it waits until somebody does
	Limits   Limits
}

// Process describes a process that was started and is not forgotten.
type Process struct {
	ID       ProcessID
	PID      int // inside the sandbox
	Argv     []string
	Dir      string
	Started  time.Time
	Input    bool
	Terminal bool
	Exit     *Exit    // nil while it runs
	Written  [4]int64 // bytes it wrote, by Stream, those not kept included
	First    Seq      // where what is kept of its output begins
	Last     Seq      // and ends
}

// Exit is the end of a process.
type Exit struct {
	Code     int            // 128+n when signal n ended it
	Signal   syscall.Signal // 0 when it ended by itself
	TimedOut bool
	Blocked  string // the rule that ended it; "" for none
	Together bool   // KillAll ended it
	At       time.Time
	CPU      time.Duration // of it and the children it waited for
	PeakRSS  int64         // bytes
}

// Chunk is a piece of output.
type Chunk struct {
	Seq     Seq // behind the piece: where to Follow on
	Stream  Stream
	Data    []byte // valid until the next piece is asked for
	Dropped int64  // bytes ahead of the piece that were not kept
}

// Kind is what stands at a path.
type Kind uint8

const (
	Other  Kind = iota // a pipe, a socket, a device
	File               //
	Folder             //
	Link               //
)

func (k Kind) String() string { return [...]string{"other", "file", "folder", "link"}[k&3] }

// FileInfo describes a file.
type FileInfo struct {
	Path     string
	Kind     Kind
	Size     int64
	Mode     fs.FileMode // permissions, and fs.ModeSetuid, ModeSetgid, ModeSticky
	UID, GID uint32      // inside the sandbox
	Modified time.Time
	Target   string // of a link
}

// ListOptions say how much of a folder List shows.
type ListOptions struct {
	Depth int // 1, or 0, is the folder alone
	Limit int // entries; 0 is MaxEntries
}

// MaxEntries bounds the answers of List and Glob.
const MaxEntries = 10_000

// Listing is what List and Glob found, sorted by path, byte by byte.
type Listing struct {
	Entries   []FileInfo
	Truncated bool // there are more
}

// Paths are what Glob found, sorted byte by byte.
type Paths struct {
	Paths     []string
	Truncated bool // there are more
}

// CreateOptions say how Create writes.
type CreateOptions struct {
	Append bool        // to what is there, instead of replacing it
	Mode   fs.FileMode // of a new file; 0 is 0644, or what the replaced file has
}

// Counts say how much Pack or Unpack went over.
type Counts struct {
	Files int64 // entries of all kinds
	Bytes int64 // content of files
}

// Change is what happened to a path.
type Change uint8

const (
	Created  Change = iota
	Modified        // its content, or a file's attributes
	Removed         //
	Lost            // some events were lost; look anew
)

func (c Change) String() string { return [...]string{"created", "modified", "removed", "lost"}[c&3] }

// Event is a change below a watched path. A move is seen as Removed and Created.
type Event struct {
	Change Change
	Path   string
	Folder bool
}
