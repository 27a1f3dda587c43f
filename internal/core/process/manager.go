package process

import (
	"context"
	"syscall"
)

// Output is the output of a process, as it comes. One goroutine at a time may use it,
// but Close may be called at any time.
type Output interface {
	// Info is what the process was when its output began to be followed.
	Info() Info
	// Next returns the next piece; io.EOF after the end of the process, and ErrEnough
	// where Converse says so.
	Next() (Chunk, error)
	// Exit is how the process ended, once Next has returned io.EOF.
	Exit() Exit
	// Enough ends the output of Converse and keeps its connection for the next.
	Enough()
	Close() error
}

// Manager starts the processes of one sandbox, follows them and ends them. Its methods
// may be called concurrently. What a caller may be told of a failure is a fault.Error;
// ErrGone says that the connection to the sandbox ended.
type Manager interface {
	// Start starts a process.
	Start(ctx context.Context, spec Spec) (Info, error)
	// Run starts a process, follows it, and forgets it once its end was read. When the
	// Output is closed earlier, or ctx ends, the process goes on and stays.
	Run(ctx context.Context, spec Spec) (Output, error)
	// Follow returns the output of a process from a place on, until its end, or that of
	// ctx.
	Follow(ctx context.Context, id ID, after Seq) (Output, error)
	// Converse writes to descriptor 3 of a process and returns its output from a place
	// on, in one exchange. A line of descriptor 4 with a blank at its end says that this
	// was all for now: then Next returns ErrEnough.
	Converse(ctx context.Context, id ID, data []byte, after Seq) (Output, error)

	// Processes lists those that are not forgotten, oldest first.
	Processes(ctx context.Context) ([]Info, error)
	Process(ctx context.Context, id ID) (Info, error)
	// Wait returns the end of a process when it has come.
	Wait(ctx context.Context, id ID) (Exit, error)

	// Write writes to the input or terminal of a process, and returns when all of it is
	// in the pipe. n is how much was, if not all.
	Write(ctx context.Context, id ID, data []byte) (n int, err error)
	// CloseInput ends the input of a process.
	CloseInput(ctx context.Context, id ID) error
	// Resize changes the size of a process's terminal.
	Resize(ctx context.Context, id ID, size Size) error

	// Signal sends a signal to a process, or to its process group: of one with a terminal
	// to the group in the foreground.
	Signal(ctx context.Context, id ID, sig syscall.Signal, group bool) error
	// Kill ends a process and all it started.
	Kill(ctx context.Context, id ID) error
	// Discard is Kill, unless it has ended, and drops what is kept of it.
	Discard(ctx context.Context, id ID) error
	// KillAll ends every program of the sandbox, also those that no caller has started.
	KillAll(ctx context.Context) error
}
