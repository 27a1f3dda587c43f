package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Call is the audit record of an operation on a sandbox.
type Call struct {
	TraceID string
	Source  string // the operation, such as "shell" or "write_file"
	Session string
	Agent   string
	Turn    string // for a model's call: the turn of an agent's session, or the response
	Thread  string
	// Command is the input, such as a command or a path. The trail keeps its digest.
	Command  []byte
	Status   audit.ExitStatus
	ExitCode int
	Reason   string // why Status is not OK
	Refused  bool   // no sandbox was asked to do anything
	Began    time.Time
	// Sizes before redaction and truncation.
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool
	Hosts, Mounts                    []string // Mounts are labels
	Metadata                         map[string]string
}

// SetSandbox records which sandbox the call uses.
func (c *Call) SetSandbox(sb *Sandbox) { c.Annotate("sandbox_id", string(sb.ID)) }

// SetOrigin records whose work the call is, if a model requested it.
func (c *Call) SetOrigin(o execution.Origin) {
	if o.Turn == "" {
		return
	}
	c.Agent, c.Session, c.Turn = o.Agent, o.Session, o.Turn
}

// Annotate adds an entry to Metadata.
func (c *Call) Annotate(name, value string) {
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	c.Metadata[name] = value
}

// Ended records how the call ended and reports whether it gets an audit row. A call that a
// documented rule rejected gets no row, unless it had already started in a sandbox: only the
// sandbox knows what happened before the error.
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
