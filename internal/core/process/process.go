// Package process describes the processes of a sandbox, and is the contract by which
// they are started, followed and ended. The sandbox may be on another machine: nothing
// here is a path, a socket or a process id of a host.
//
// Paths, arguments and variables are bytes without a NUL, not necessarily UTF-8.
package process

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"syscall"
	"time"
)

// ErrGone says that the connection to a sandbox ended: it was closed, or the sandbox
// or its daemon ended. Programs in the sandbox run on if the sandbox does; a new use of
// it connects again.
var ErrGone = errors.New("the connection to the sandbox is over")

// ErrEnough is the end of the output of Converse when the process said that it was.
var ErrEnough = errors.New("the process has no more output yet")

// Codes of the fault.Error that says why a program could not be started.
const (
	NoProgram    = "program_not_found"      // there is none of that name
	NoExecutable = "program_not_executable" // there is one, which cannot be executed
)

// TooManyFiles is the code of the fault.Error for a sandbox without a free file descriptor.
const TooManyFiles = "too_many_open_files"

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

// ID names a process within its sandbox, for good: 1 to 64 letters,
// digits, '-' and '_'.
type ID string

// Size is that of a terminal.
type Size struct{ Rows, Columns uint16 }

// Limits are resource limits of a process; zero leaves the default of the sandbox.
type Limits struct {
	Processes int // tasks of the unprivileged user, in the whole sandbox
	OpenFiles int // descriptors of one process
}

// Spec says how a process is started: as the unprivileged user, in a
// session of its own.
type Spec struct {
	ID    ID       // "" for a new one; asked for twice, it is started once
	Argv  []string // a program without a slash in its name is looked for in the PATH of Env
	Shell string   // instead of Argv, a text for bash, or sh where there is no bash
	Env   []string // variables as "NAME=value", over those that the sandbox has for its programs
	Dir   string   // "" for the home directory
	// Isolation is about the sandbox's own variables. Those of Env, and those named in Keep, stay.
	Isolation Isolation
	Keep      []string
	Input     bool          // it has an input to Write to, instead of /dev/null
	Terminal  *Size         // it has a terminal as input and outputs
	Control   bool          // descriptors 3, to read what WriteControl sends, and 4, for stream Control
	Timeout   time.Duration // ends it and all it started; zero sets none
	Lossless  bool          // while it is followed it waits when its output is not read, instead of dropping some
	Patient   bool          // the same while it is not followed: it waits until it is
	Limits    Limits
}

// Info describes a process that was started and is not forgotten.
type Info struct {
	ID       ID
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
	// OutOfMemory is set when it, or a program that it started, was ended because the
	// sandbox's memory was used up, and Code is 137.
	OutOfMemory bool
	At          time.Time
	CPU         time.Duration // of it and the children it waited for
	PeakRSS     int64         // bytes
}

// Chunk is a piece of output.
type Chunk struct {
	Seq     Seq // behind the piece: where to Follow on
	Stream  Stream
	Data    []byte // valid until the next piece is asked for
	Dropped int64  // bytes ahead of the piece that were not kept
}

// NewProcessID returns an id that no other process has.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:])
	return ID("p-" + hex.EncodeToString(b[:]))
}
