package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Call is something that was done with a sandbox, as the trail tells of it.
type Call struct {
	TraceID string
	Source  string // what was called, such as "shell" or "write_file"
	Session string
	Agent   string
	Turn    string // of a model's call: the turn of an agent's session, or the response
	Thread  string
	// What was asked for, such as a command or a path: its digest is kept.
	Command  []byte
	Status   audit.ExitStatus
	ExitCode int
	Reason   string // why it is not OK
	Refused  bool   // no sandbox was asked to do anything
	Began    time.Time
	// Sizes before redaction and truncation.
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool
	Hosts, Mounts                    []string // Mounts are labels
	Metadata                         map[string]string
}

// SetSandbox notes which sandbox a call is about.
func (c *Call) SetSandbox(sb *Sandbox) { c.Annotate("sandbox_id", string(sb.ID)) }

// SetOrigin notes whose work the call is, if a model asked for it.
func (c *Call) SetOrigin(o execution.Origin) {
	if o.Turn == "" {
		return
	}
	c.Agent, c.Session, c.Turn = o.Agent, o.Session, o.Turn
}

// Annotate notes something of a call in its Metadata.
func (c *Call) Annotate(name, value string) {
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	c.Metadata[name] = value
}

// Ended notes how a call ended, and reports whether it leaves a row: one that
// broke a documented rule leaves none, unless a sandbox had begun with it. What
// that did before it, or its guest, said so, only they know.
func (c *Call) Ended(ctx context.Context, err error, begun bool) bool {
	c.Refused = err != nil && !begun
	f, told := errors.AsType[*fault.Error](err)
	switch {
	case err == nil && c.Status == "":
		c.Status = audit.OK
	case err == nil: // who did it knows better
	case told && !begun && (f.Kind == fault.Invalid || f.Kind == fault.TooLarge || f.Kind == fault.Unsupported):
		return false
	case errors.Is(context.Cause(ctx), context.Canceled):
		c.Status, c.ExitCode, c.Reason = audit.Cancelled, -1, "the caller went away"
	default:
		c.Status, c.ExitCode, c.Reason = audit.Error, -1, "internal error"
		if told {
			c.Reason = f.Msg
		}
		switch {
		case told && f.Kind == fault.Exhausted:
			c.Status = audit.CapExceeded
		case told && f.Kind == fault.Unavailable:
			c.Status = audit.Provisioning
		}
	}
	return true
}
