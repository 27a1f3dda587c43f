// Package process is the contract for starting, following and ending the processes of a sandbox.
// The sandbox may be on another machine, so no type here holds a path, socket or process id of a
// host.
//
// Paths, arguments and variables are bytes without NUL, not necessarily UTF-8.
package process

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"syscall"
	"time"
)

// ErrGone says that the connection to a sandbox ended: it was closed, or the sandbox or its daemon
// ended. Programs keep running as long as the sandbox does; the next use reconnects.
var ErrGone = errors.New("the connection to the sandbox is over")

// ErrEnough ends the output of Converse when the process says that no more output follows for now.
var ErrEnough = errors.New("the process has no more output yet")

// Codes of the fault.Error that says why a program did not start.
const (
	NoProgram    = "program_not_found"      // no program has the name
	NoExecutable = "program_not_executable" // the program exists but is not executable
)

// TooManyFiles is the code of the fault.Error for a sandbox without a free file descriptor.
const TooManyFiles = "too_many_open_files"

// Stream identifies an output of a process.
type Stream uint8

const (
	Stdout   Stream = iota
	Stderr          //
	Terminal        // instead of Stdout and Stderr if the process has a terminal
	Control         // the process's writes to descriptor 4
)

func (s Stream) String() string {
	return [...]string{"stdout", "stderr", "terminal", "control"}[s&3]
}

// Seq is a position in the output of a process: the number of bytes before it, over all streams.
type Seq int64

// ID identifies a process within its sandbox and is never reused: 1 to 64 letters, digits, '-' and
// '_'.
type ID string

// Size is the size of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// Limits are resource limits of a process; zero uses the sandbox's default.
type Limits struct {
	Processes int // tasks of the unprivileged user in the whole sandbox
	OpenFiles int // descriptors per process
}

// Spec says how to start a process. It runs as the unprivileged user in its own session.
type Spec struct {
	ID    ID       // "" to generate one; starting an existing ID again does not start a second process
	Argv  []string // a program name without a slash is looked up in the PATH of Env
	Shell string   // instead of Argv: a script for bash, or sh if the image has no bash
	Env   []string // "NAME=value" entries that override the sandbox's variables
	Dir   string   // "" for the home directory
	// Isolation restricts the sandbox's own variables. Variables in Env and those named in Keep
	// remain.
	Isolation Isolation
	Keep      []string
	Input     bool          // stdin accepts Write instead of being /dev/null
	Terminal  *Size         // run with a terminal as stdin, stdout and stderr
	Control   bool          // open descriptor 3, which reads what Converse writes, and 4, for stream Control
	Timeout   time.Duration // ends the process and its descendants; zero for no timeout
	Lossless  bool          // while followed, block the process if its output is not read, instead of dropping output
	Patient   bool          // likewise while not followed: block until a follower reads
	Limits    Limits
}

// Info describes a process that was started and not discarded.
type Info struct {
	ID       ID
	PID      int // within the sandbox
	Argv     []string
	Dir      string
	Started  time.Time
	Input    bool
	Terminal bool
	Exit     *Exit    // nil while the process runs
	Written  [4]int64 // bytes written, by Stream, including dropped ones
	First    Seq      // start of the stored output
	Last     Seq      // end of the stored output
}

// Exit says how a process ended.
type Exit struct {
	Code     int            // 128+n if signal n ended the process
	Signal   syscall.Signal // 0 if the process exited
	TimedOut bool
	Blocked  string // the rule that ended the process; "" for none
	Together bool   // KillAll ended it
	// OutOfMemory is set, with Code 137, if the kernel ended the process or a descendant because
	// the sandbox ran out of memory.
	OutOfMemory bool
	At          time.Time
	CPU         time.Duration // of the process and the children that it waited for
	PeakRSS     int64         // bytes
}

// Chunk is a piece of output.
type Chunk struct {
	Seq     Seq // position after the chunk; Follow from here
	Stream  Stream
	Data    []byte // valid until the next call of Next
	Dropped int64  // bytes before the chunk that were dropped
}

// NewID returns a unique ID.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:])
	return ID("p-" + hex.EncodeToString(b[:]))
}
