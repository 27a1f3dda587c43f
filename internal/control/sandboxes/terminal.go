package sandboxes

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
)

// login is the command of a terminal whose client names none.
const login = "export TERM=xterm-256color; exec $(command -v bash || echo sh) -i"

// Terminal describes a terminal to open.
type Terminal struct {
	Size process.Size
	// Process is the existing terminal to continue after a cursor; "" for a new one.
	Process process.ID
	After   process.Seq

	Shell string   // of a new terminal: a script
	Argv  []string // instead of Shell; with neither, an interactive shell
	Dir   string   // where a new terminal starts
}

func (t *Terminal) spec() process.Spec {
	spec := process.Spec{Shell: t.Shell, Argv: t.Argv, Dir: t.Dir, Terminal: &t.Size, Lossless: true}
	if spec.Shell == "" && len(spec.Argv) == 0 {
		spec.Shell = login
	}
	return spec
}

// OpenTerminal opens a terminal that outlives its client, or continues one.
func (u *Use) OpenTerminal(ctx context.Context, t *Terminal) (*Output, error) {
	if t.Process != "" {
		// A terminal that has ended has no size, but its last output and its exit code.
		if err := u.Guest().Resize(ctx, t.Process, t.Size); err != nil && fault.KindOf(err) != fault.Conflict {
			return nil, err
		}
		return u.Follow(ctx, t.Process, t.After, false)
	}
	started, err := u.Start(ctx, t.spec(), nil)
	if err != nil {
		return nil, err
	}
	out, err := u.Follow(ctx, started.ID, 0, false)
	if err != nil {
		return nil, errors.Join(err, u.Guest().Discard(ctx, started.ID))
	}
	out.made = true
	return out, nil
}

// RunTerminal opens a new terminal whose client abandons it at the end.
func (u *Use) RunTerminal(ctx context.Context, t *Terminal) (*Output, error) {
	return u.run(ctx, t.spec())
}

// Type writes input to a terminal. It drops input for a process that has ended, because the client
// has yet to see the end.
func (o *Output) Type(ctx context.Context, data []byte) error {
	_, err := o.use.Guest().Write(ctx, o.Info().ID, data)
	return o.unlessEnded(ctx, err)
}

// Resize changes the size of a terminal.
func (o *Output) Resize(ctx context.Context, size process.Size) error {
	return o.unlessEnded(ctx, o.use.Guest().Resize(ctx, o.Info().ID, size))
}

// unlessEnded is err, unless the end of the process caused it.
func (o *Output) unlessEnded(ctx context.Context, err error) error {
	if err == nil || fault.KindOf(err) != fault.Conflict {
		return err
	}
	if p, failed := o.use.Guest().Process(ctx, o.Info().ID); failed == nil && p.Exit != nil {
		return nil
	}
	return err
}

// TerminalClient is the client of a terminal.
type TerminalClient interface {
	// Receive returns the client's next input, or the new size of the terminal; size is nil for input.
	Receive(ctx context.Context) (data []byte, size *process.Size, err error)
	// Show shows output. The client can continue at cursor.
	Show(ctx context.Context, data []byte, cursor process.Seq) error
}

// Converse passes input and output between a terminal and its client until one of them ends. It
// returns io.EOF if the process ended; the client can then still be told. It receives until the caller
// closes the client or ends ctx. tolerant continues after input that the process does not take.
func (o *Output) Converse(ctx context.Context, client TerminalClient, tolerant bool) error {
	showing, left := context.WithCancelCause(ctx)
	defer left(nil)
	// Receive has ctx: a WebSocket closes when the context of a read ends, and the exit is still to be sent.
	go func() { left(o.receive(ctx, client, tolerant)) }() // ends with the client
	return o.Show(showing, func(_ process.Stream, data []byte) error { return client.Show(showing, data, o.Cursor()) }, nil, nil)
}

func (o *Output) receive(ctx context.Context, client TerminalClient, tolerant bool) error {
	for {
		data, size, err := client.Receive(ctx)
		if err != nil {
			return err
		}
		if size == nil {
			err = o.Type(ctx, data)
		} else {
			err = o.Resize(ctx, *size)
		}
		if err != nil && (!tolerant || errors.Is(err, process.ErrGone)) {
			return err
		}
	}
}
