package execution

import (
	"context"
	"errors"
	"time"
)

// Program is what a claimed sandbox is asked to run.
type Program struct {
	TraceID  string
	ID       uint64 // names the run within its sandbox for good; never zero
	Language Language
	Code     string
	Env      map[string]string // the request's variables, over the environment's
	Input    Input
	Timeout  time.Duration
	MaxBytes int64 // bytes of each stream handed to the sink; what is over is counted and dropped

	// Skills are files that are put in place for reading alone.
	Skills []SkillFile

	// Port is of the loopback address in the sandbox where the program may ask this process
	// by HTTP, and Serve answers; 0 for none. Serve returns soon after its context has ended.
	Port  uint16
	Serve func(ctx context.Context, request []byte) (response []byte)
}

// ErrLetGo, as the cause that ends a run's context, leaves the program running
// for a later process. Any other cause kills it.
var ErrLetGo = errors.New("a later process continues the program")

// ErrNoRun says that a sandbox knows nothing of a program.
var ErrNoRun = errors.New("program not found in the sandbox")

// Outcome is how a program ended, as far as the sandbox can tell.
type Outcome struct {
	ExitCode                 int // 128+n when signal n ended it; -1 when none was seen
	StdoutBytes, StderrBytes int64
	TimedOut                 bool
	Lost                     bool   // the sandbox ended before the program was seen to
	OOM                      bool   // the memory limit ended the program or the sandbox
	DiskFull                 bool   // a failed program left one of its file systems full
	ProcessesFull            bool   // a failed program left its process limit reached
	Blocked                  string // the permission that ended it; "" for none
	PeakMemory               int64
	Traffic                  Traffic
}
