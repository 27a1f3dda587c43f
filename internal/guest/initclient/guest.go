// Package initclient is the host's side of the conversation with atoll-guest, process
// 1 of every sandbox: it warms interpreters, runs programs and ends them.
//
// What comes from a guest is written by the party that controls the sandbox. A Client
// checks every length, number and order, allocates nothing by a length it was
// told, and ends the conversation with ErrProtocol at the first thing that
// cannot be. docs/contribute/guest-protocol.md describes the protocol.
package initclient

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

var (
	// ErrNotStarted is wrapped by Run's error when nothing was run.
	ErrNotStarted = errors.New("nothing was started")
	// ErrProtocol says that the guest sent what no guest sends. Its sandbox is
	// to be destroyed.
	ErrProtocol = errors.New("the guest broke the protocol")
	// ErrClosed says that the Client was closed in the meantime.
	ErrClosed = errors.New("guest client is closed")
	// ErrNoRun says that no such run is live.
	ErrNoRun = errors.New("no such run")
)

// Error is a refusal by the guest.
type Error struct {
	Op  string
	Msg string // as the guest put it; up to 4 KiB of anything
}

func (e *Error) Error() string { return e.Op + ": " + e.Msg }

// RunID names a run within its sandbox. It must be unique there for good.
type RunID uint64

// NewRunID returns a random RunID, never zero.
func NewRunID() RunID {
	var b [8]byte
	rand.Read(b[:])
	return RunID(binary.LittleEndian.Uint64(b[:]) | 1)
}

// Stream is one of a program's two outputs.
type Stream uint8

const (
	Stdout Stream = iota
	Stderr
)

func (s Stream) String() string {
	if s == Stdout {
		return "stdout"
	}
	return "stderr"
}

// Sink receives output as it comes, in order per stream, from one goroutine at a
// time. It must not keep p. While it blocks, all other runs of the Client wait.
type Sink func(s Stream, p []byte)

// Serve answers an HTTP request of a program, which is anything of at most wire.MaxAsk
// bytes, with an HTTP response of at most MaxResponse. It returns soon after ctx has
// ended, as it does with the run. Several are called at the same time.
type Serve func(ctx context.Context, request []byte) (response []byte)

// MaxResponse bounds what Serve returns, in bytes.
const MaxResponse = wire.MaxAnswer

// Limits are resource limits of a program; zero sets none.
type Limits struct {
	Processes int // tasks of the unprivileged user, in the whole sandbox
	OpenFiles int // descriptors of one process
}

// Command is how a process is started: always as the unprivileged user, in a
// session of its own.
type Command struct {
	Language string   // a language.Name, or "" for any other program
	Path     string   // absolute path of the program
	Argv     []string // argv[0] included, such as "python3", "main.py"
	Env      []string // all of it, as "NAME=value"
	Dir      string   // working directory
	Limits   Limits
}

// WarmSpec describes an interpreter that is to wait for its program.
type WarmSpec struct {
	Command
	// Site is where Python looks for .pth files: the last folder of its
	// sys.path, as seen inside the sandbox. Unused by the other languages.
	Site string
	// Preload are the Python modules to import ahead.
	Preload []string
}

// RenewSpec describes the next interpreter, and how much its program may write.
type RenewSpec struct {
	WarmSpec
	Root, Tmp, Shm int64 // bytes
	Inodes         int   // files, in each of the three
}

// File is put in place before a program starts, owned by the unprivileged user, or by root
// below /skills; its parents are made. Whatever has its name is replaced.
type File struct {
	Path string // absolute; one that ends with a slash is a folder
	Mode fs.FileMode
	Data []byte
}

// RunSpec describes a run.
type RunSpec struct {
	ID RunID // a new one when zero
	Command
	Files []File
	Stdin []byte // what the program reads; /dev/null if it is empty
	// Port has the guest listen at 127.0.0.1 for as long as the program runs, and Serve
	// answer the HTTP requests that come there; 0 for none. An earlier program may have
	// taken it, which then gets them.
	Port  uint16
	Serve Serve
	// Warm allows the interpreter that waits to be used, if Path, Dir and Limits are
	// the same as its, and Argv begins with its. Env may differ. If it cannot
	// be used it ends, and another is started.
	Warm bool
	// Timeout ends the program and everything it started; zero sets none.
	Timeout time.Duration
	// OutputLimit is how many bytes of each stream reach the sink; the rest is
	// counted and dropped. Zero passes nothing on.
	OutputLimit int64
}

// Result is the end of a run.
type Result struct {
	ExitCode    int // 128+n when signal n ended the program
	Signal      int // 0 when it ended by itself
	TimedOut    bool
	StdoutBytes int64 // all that was written, not only what was passed on
	StderrBytes int64
	PeakRSS     int64         // bytes, of the main process
	CPU         time.Duration // of the main process and the children it waited for, its wait for the program included
	Warm        bool          // the waiting interpreter ran it
	DiskFull    bool          // it failed, and left a file system without room for data or files
	TasksFull   bool          // it failed, and left Limits.Processes reached
	Blocked     string        // the rule of Confine that ended it; "" for none
}

// Info is what a guest said of itself when it was dialled.
type Info struct {
	Version string // of the guest's binary
	Warm    string // language of the interpreter that waits, or ""
	// Runs are live, or ended and not yet acknowledged. Attach to or Discard each
	// of them, side by side: frames are acknowledged in order, so while the output of
	// one is not taken the others come to a standstill too.
	Runs []RunID
}

// Reseed describes how a restored sandbox is told apart from others of the same checkpoint.
type Reseed struct {
	Hostname string // "" leaves it as it is
	// MachineID goes into /etc/machine-id, and GenerationFile gets a new number;
	// "" leaves both as they are.
	MachineID string
}

// GenerationFile is the file in a sandbox that programs can watch to learn that
// they were restored, and others from the same checkpoint.
const GenerationFile = wire.GenerationFile
