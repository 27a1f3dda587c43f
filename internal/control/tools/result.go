package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// result is what the agent is told of a run that has ended.
func (t *ExecuteCode) result(ctx context.Context, e *execution.Execution) (*Result, error) {
	out := &Result{TraceID: e.TraceID, ExitCode: e.ExitCode, Duration: e.Duration(), Message: e.Error}
	switch e.Status {
	case execution.Success:
		out.OK, out.ExitStatus = true, audit.OK
	case execution.Timeout:
		out.ExitStatus, out.Error = audit.Timeout, TimedOut
	case execution.OOM:
		out.ExitStatus, out.Error = audit.OOM, OutOfMemory
	case execution.Cancelled:
		out.ExitStatus, out.Error = audit.Cancelled, Cancelled
	case execution.Blocked:
		out.ExitStatus, out.Error = audit.Provisioning, Provisioning
		if !e.NotStarted { // a permission ended it
			out.ExitStatus, out.Error = audit.Error, Failed
		}
	default:
		out.ExitStatus = audit.Error
		if e.Error != "" {
			out.Error = Failed
		} else {
			out.Message = fmt.Sprintf("the program exited with status %d", e.ExitCode)
		}
	}
	if e.Hint != "" {
		out.Message = strings.TrimPrefix(out.Message+"; "+e.Hint, "; ")
	}

	most, mostErr := e.Source.Cut(0)
	var err error
	if out.Stdout, out.StdoutTruncated, err = t.read(ctx, e, execution.Stdout, most); err != nil {
		return nil, err
	}
	if out.Stderr, out.StderrTruncated, err = t.read(ctx, e, execution.Stderr, mostErr); err != nil {
		return nil, err
	}
	out.StdoutTruncated = out.StdoutTruncated || e.StdoutTruncated
	out.StderrTruncated = out.StderrTruncated || e.StderrTruncated
	return out, nil
}

// read returns the beginning of a stream, and whether there is more of it.
func (t *ExecuteCode) read(ctx context.Context, e *execution.Execution, s execution.Stream, most int64) ([]byte, bool, error) {
	in, err := t.cfg.Runner.Shown(ctx, e, s)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	if gateway.Gone(e, s, in) {
		return nil, true, nil
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(in, most+1))
	if err != nil {
		return nil, false, fmt.Errorf("read the output of %s: %w", e.TraceID, err)
	}
	if n <= most {
		return buf.Bytes(), false, nil
	}
	return whole(buf.Bytes()[:most]), true, nil
}

// whole returns p without a character that was cut off at its end.
func whole(p []byte) []byte { return p[:wire.WholeRunes(p)] }
