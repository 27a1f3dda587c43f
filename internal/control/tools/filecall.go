package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// fileTime is how long the program for files may take.
const fileTime = 30 * time.Second

// File does a call of the program for files in a sandbox of a caller's session. tool is what
// the audit trail calls it. With a Command it is done once, as that of shell.
func (s *Set) File(ctx context.Context, by *Caller, tool, name string, fc *filetool.Call) (out *filetool.Answer, err error) {
	if err := by.check(); err != nil {
		return nil, err
	}
	c := s.callOf(by, tool)
	c.row.Command = subject(fc)
	err = c.use(ctx, name, func(h sandbox.Handle) (err error) {
		out, err = c.file(ctx, h, fc)
		return err
	})
	if failed := c.record(ctx, err); failed != nil {
		return nil, failed
	}
	return out, err
}

// Keep takes the content of a file that is shared, in which the secrets are to be covered. It
// leaves the audit row.
type Keep func(ctx context.Context, content io.Reader, secrets []string) error

// Share passes a file of a sandbox to keep, if fc, a call of filetool.Share, finds that it can
// be shared.
func (s *Set) Share(ctx context.Context, by *Caller, tool, name string, fc *filetool.Call, keep Keep) (out *filetool.Answer, err error) {
	if err := by.check(); err != nil {
		return nil, err
	}
	c := s.callOf(by, tool)
	c.row.Command = subject(fc)
	err = c.use(ctx, name, func(h sandbox.Handle) (err error) {
		covers, err := h.Redactor(ctx)
		if err != nil {
			return err
		}
		if out, err = c.file(ctx, h, fc); err != nil || out.Failed {
			return err
		}
		_, body, err := h.Guest().Read(ctx, fc.Path, 0, filetool.MaxShared+1)
		if err != nil {
			return err
		}
		defer body.Close()
		c.recorded = true
		return keep(ctx, body, covers.Config().Secrets)
	})
	if failed := c.record(ctx, err); failed != nil {
		return nil, failed
	}
	return out, err
}

func (s *Set) callOf(by *Caller, tool string) *call {
	c := &call{set: s, by: by, row: sandbox.Call{TraceID: by.TraceID, Source: tool, Session: by.Session, Agent: by.Agent, Began: time.Now()}}
	c.row.SetOrigin(by.By)
	return c
}

// subject is what the audit trail has the digest of: what a call is about.
func subject(fc *filetool.Call) []byte {
	switch fc.Op {
	case filetool.Patch:
		return []byte(fc.Patch)
	case filetool.Grep, filetool.Glob:
		return []byte(fc.Pattern)
	}
	return []byte(fc.Path)
}

// file has the sandbox's own program for files do a call.
func (c *call) file(ctx context.Context, h sandbox.Handle, fc *filetool.Call) (*filetool.Answer, error) {
	covers, err := h.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(fc)
	if err != nil {
		return nil, err
	}
	work, end := context.WithTimeoutCause(ctx, fileTime+c.set.overdue, errOverdue)
	defer end()
	run, err := c.start(work, h, process.Spec{
		Argv: []string{path.Join(runtime.GuestDir, filetool.Program), filetool.Command}, Input: true, Timeout: fileTime, Lossless: true, Isolation: process.Isolated,
	})
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if err := c.tell(work, h, run.Info().ID, text); err != nil {
		return nil, abandoned(ctx, h, run, err)
	}
	said, err := answer(run, covers)
	if err != nil {
		return nil, abandoned(ctx, h, run, err)
	}
	exit := run.Exit()
	if err := h.Killed(ctx, exit); err != nil {
		return nil, err
	}
	c.row.ExitCode, c.row.StdoutBytes = exit.Code, int64(len(said))
	if exit.TimedOut {
		c.row.Status, c.row.Reason = audit.Timeout, "it timed out"
		return nil, fault.New(fault.Conflict, "it took longer than %s and was stopped", fileTime)
	}
	a, err := filetool.Parse(said)
	if err != nil || !a.Failed && exit.Code != 0 {
		return nil, fault.New(fault.Conflict, "the sandbox could not complete the call")
	}
	if a.Failed {
		_, c.row.Reason = a.Split()
		c.row.Status = audit.Error
	}
	return a, nil
}

// tell writes a call to the program that is to do it. One that another caller has begun was told
// all of it, or nothing that it could do.
func (c *call) tell(ctx context.Context, h sandbox.Handle, id process.ID, text []byte) error {
	if !c.by.Command.Begun {
		if _, err := h.Guest().Write(ctx, id, text); err != nil && fault.KindOf(err) == fault.Internal {
			return err // else it has ended by itself, and says why
		}
	}
	if err := h.Guest().CloseInput(ctx, id); err != nil && fault.KindOf(err) == fault.Internal {
		return err
	}
	return nil
}

// answer reads what the program for files writes, without what must not be seen.
func answer(run process.Output, covers *redact.Set) (said []byte, err error) {
	keep := covers.Stream(func(p []byte) { said = append(said, p[:min(len(p), filetool.MaxAnswer+1-len(said))]...) })
	for {
		chunk, err := run.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if chunk.Stream == process.Stdout {
			keep.Write(chunk.Data)
		}
	}
	keep.Flush()
	return said, nil
}
