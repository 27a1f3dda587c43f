// Package execution is the life of one run of code in a sandbox: admit, claim,
// run, collect, record.
//
// The domain knows one Execution. The dialects that callers speak (inline JSON,
// NDJSON, agent tools) are renderers at the edge.
package execution

import (
	"context"
	"time"
)

// Language is what a request's code is written in.
type Language string

const (
	Python Language = "python"
	Node   Language = "node"
	Bash   Language = "bash"
)

// Languages lists every language, the default first.
var Languages = []Language{Python, Node, Bash}

// Status is where an execution is in its life.
type Status string

const (
	Running   Status = "running"
	Success   Status = "success"   // the program exited with 0
	Failed    Status = "failed"    // it exited otherwise, or was never seen to
	Timeout   Status = "timeout"   // its wall-clock limit ended it
	OOM       Status = "oom"       // its memory limit ended it
	Cancelled Status = "cancelled" // the caller ended it
)

// Stream names one of a program's two outputs.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Execution is the record of one run.
type Execution struct {
	TraceID  string // "trc_" and 32 hexadecimal digits
	Language Language
	Status   Status
	Metadata map[string]string

	// Output as the program wrote it, bytes, cut at the configured length. The
	// byte counts are of everything written.
	Stdout, Stderr                   []byte
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool

	// ExitCode is the program's exit status, 128+n when signal n ended it, and
	// -1 when none was seen (a time-out, a lost sandbox).
	ExitCode int

	// Error names what ended the run when it was not the program itself, such
	// as "memory limit of 512 MiB exceeded"; empty otherwise.
	Error string

	CreatedAt   time.Time
	CompletedAt time.Time
	Warm        bool // a pooled sandbox answered
}

// Duration is the time from admission to completion.
func (e *Execution) Duration() time.Duration { return e.CompletedAt.Sub(e.CreatedAt) }

// Sink receives output as it comes, in order per stream. It must not keep p.
// It is called from one goroutine at a time.
type Sink func(stream Stream, p []byte)

// Executor runs requests. Execute returns an error (a *fault.Error where the
// caller can be told why) only when nothing was run; every end of a program,
// limits included, is an Execution. The run ends early only when ctx does.
type Executor interface {
	Execute(ctx context.Context, req Request, sink Sink) (*Execution, error)
}
