package process

import (
	"context"
	"syscall"
)

// Output streams the output of a process. Only one goroutine at a time may use it, but Close may be
// called at any time.
type Output interface {
	// Info returns the state of the process when this Output was opened.
	Info() Info
	// Next returns the next chunk. It returns io.EOF after the process has ended, and ErrEnough as
	// Converse describes.
	Next() (Chunk, error)
	// Exit says how the process ended. It is valid after Next has returned io.EOF.
	Exit() Exit
	// Enough ends the output of Converse and keeps its connection for reuse.
	Enough()
	Close() error
}

// Manager starts, follows and ends the processes of one sandbox. It is safe for concurrent use.
// Errors that a caller may see are *fault.Error; ErrGone means that the connection to the sandbox
// ended.
type Manager interface {
	Start(ctx context.Context, spec Spec) (Info, error)
	// Run starts a process, follows it, and discards it after the caller has read its end. If the
	// caller closes the Output earlier or ctx ends, the process keeps running and stays listed.
	Run(ctx context.Context, spec Spec) (Output, error)
	// Follow streams the output of a process after a position, until the process or ctx ends.
	Follow(ctx context.Context, id ID, after Seq) (Output, error)
	// Converse writes to descriptor 3 of a process and returns its output after a position, in one
	// exchange. A line on descriptor 4 that ends with a space says that no more output follows for
	// now; Next then returns ErrEnough.
	Converse(ctx context.Context, id ID, data []byte, after Seq) (Output, error)

	// Processes lists the processes that were not discarded, oldest first.
	Processes(ctx context.Context) ([]Info, error)
	Process(ctx context.Context, id ID) (Info, error)
	// Wait waits for a process to end.
	Wait(ctx context.Context, id ID) (Exit, error)

	// Write writes to the stdin or terminal of a process and returns when the pipe has accepted all
	// of data. On an error, n is the number of bytes accepted.
	Write(ctx context.Context, id ID, data []byte) (n int, err error)
	// CloseInput closes the stdin of a process.
	CloseInput(ctx context.Context, id ID) error
	// Resize changes the size of a process's terminal.
	Resize(ctx context.Context, id ID, size Size) error

	// Signal sends a signal to a process or its process group. For a process with a terminal, the
	// group is the foreground group.
	Signal(ctx context.Context, id ID, sig syscall.Signal, group bool) error
	// Kill ends a process and all its descendants.
	Kill(ctx context.Context, id ID) error
	// Discard kills a process if it still runs, and deletes its stored output.
	Discard(ctx context.Context, id ID) error
	// KillAll ends every program of the sandbox, including programs that no caller started.
	KillAll(ctx context.Context) error
}
