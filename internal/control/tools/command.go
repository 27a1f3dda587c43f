package tools

import (
	"context"
	"errors"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Command is the process of a shell call that survives its caller: if the caller dies, another
// one collects the result.
type Command struct {
	Process process.ID // beginning with CommandPrefix
	Begun   bool       // another caller may have started it: it is not started again
	// Claim is called once before it is started; nil for a caller that does without.
	Claim func(ctx context.Context) error
}

// CommandPrefix is the prefix of the process ids of Commands.
const CommandPrefix = "call-"

// ErrNoTrace reports that the sandbox has no record of a Command that may have started.
var ErrNoTrace = errors.New("the state of the command is unknown")

// keepCommands is how many Commands that have ended a sandbox keeps: callers may not have
// recorded the outcome of the last ones yet.
const keepCommands = 4

// start starts a command, or finds it, and follows its output.
func (c *call) start(ctx context.Context, h sandbox.Handle, spec process.Spec) (process.Output, error) {
	cmd := &c.by.Command
	if cmd.Process == "" {
		return h.Guest().Run(ctx, spec)
	}
	if cmd.Begun {
		if _, err := h.Guest().Process(ctx, cmd.Process); fault.KindOf(err) == fault.NotFound {
			return nil, ErrNoTrace
		} else if err != nil {
			return nil, err
		}
		return h.Guest().Follow(ctx, cmd.Process, 0)
	}
	if err := forget(ctx, h.Guest()); err != nil {
		return nil, err
	}
	if cmd.Claim != nil {
		if err := cmd.Claim(ctx); err != nil {
			return nil, err
		}
	}
	spec.ID, spec.Patient = cmd.Process, true
	if _, err := h.Guest().Start(ctx, spec); err != nil {
		return nil, err
	}
	return h.Guest().Follow(ctx, cmd.Process, 0)
}

// abandoned is the error of a command that was not followed to its end. It ends one whose caller
// has gone; other ends, such as that of the server, leave it to its timeout.
func abandoned(ctx context.Context, h sandbox.Handle, run process.Output, err error) error {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return err
	}
	return errors.Join(err, h.Guest().Discard(context.WithoutCancel(ctx), run.Info().ID))
}

// forget drops what is kept of the oldest Commands that have ended.
func forget(ctx context.Context, g sandbox.Guest) error {
	all, err := g.Processes(ctx)
	if err != nil {
		return err
	}
	var ended []process.ID
	for i := range all {
		if all[i].Exit != nil && strings.HasPrefix(string(all[i].ID), CommandPrefix) {
			ended = append(ended, all[i].ID)
		}
	}
	for _, id := range ended[:max(0, len(ended)-keepCommands)] {
		if err := g.Discard(ctx, id); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// EndCommand ends a Command that another caller started in a sandbox, and discards its record.
func (s *Set) EndCommand(ctx context.Context, c *Caller, name string) error {
	h, err := s.cfg.Pool.Use(ctx, c.Principal, c.Session, name)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Guest().Discard(ctx, c.Command.Process)
}
