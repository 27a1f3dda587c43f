package execution

import (
	"context"
	"errors"
	"time"
)

// Program is what a claimed sandbox runs.
type Program struct {
	TraceID  string
	ID       uint64 // identifies the run within its sandbox, never reused; never zero
	Language Language
	Code     string
	Env      map[string]string // the request's variables, over the environment's
	Input    Input
	Timeout  time.Duration
	MaxBytes int64 // bytes of each stream passed to the sink; the rest is only counted

	// Skills are read-only files that Atoll installs in the sandbox.
	Skills []SkillFile

	// Port is the port on the sandbox's loopback address where the program sends HTTP requests to
	// this process; 0 for none. Serve answers them, and returns soon after its context ends.
	Port  uint16
	Serve func(ctx context.Context, request []byte) (response []byte)
}

// ErrLetGo, as the cancellation cause of a run, leaves the program running for a later process. Any
// other cause kills it.
var ErrLetGo = errors.New("a later process continues the program")

// ErrNoRun says that the sandbox does not know the program.
var ErrNoRun = errors.New("program not found in the sandbox")

// Outcome says how a program ended, as far as the sandbox knows.
type Outcome struct {
	ExitCode                 int // 128+n if signal n ended it; -1 if the exit was not seen
	StdoutBytes, StderrBytes int64
	TimedOut                 bool
	Lost                     bool   // the sandbox ended before the program's exit was seen
	OOM                      bool   // the memory limit ended the program or the sandbox
	DiskFull                 bool   // the program failed, and one of its file systems was full
	ProcessesFull            bool   // the program failed, and its process limit was reached
	Blocked                  string // the permission that ended it; "" for none
	PeakMemory               int64
	Traffic                  Traffic
}
