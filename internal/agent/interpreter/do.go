package interpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// call is a call while it is made.
type call struct {
	*Interpreter
	*loop.Call
	caller  *tenant.Principal
	options Options
	req     codecontext.Request
	sb      *sandbox.Sandbox // nil until there is one
	out     collector
	ending  bool // the run has ended: nothing is to be begun
}

// Do implements loop.Handler.
func (h *Interpreter) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	return h.do(ctx, c, false)
}

// do makes a call. One that is ending is not begun.
func (h *Interpreter) do(ctx context.Context, c *loop.Call, ending bool) (*loop.Outcome, error) {
	in, err := Parse(c.Call.Arguments)
	if err != nil {
		return nil, err // Show has read them
	}
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	m := &call{Interpreter: h, Call: c, options: o, ending: ending}
	m.out.Container = o.Container
	p, err := sandboxcall.Caller(ctx, h.Callers, c.Run.Tenant, c.Run.Key, c.Run.Environment, tenant.ScopeSandboxes)
	if err != nil {
		return m.refused(ctx, err)
	}
	m.caller = p
	policy := h.Policies.Policy(p)
	timeout := policy.DefaultTimeout()
	if in.Timeout != nil {
		timeout = time.Duration(*in.Timeout) * time.Second
	}
	if timeout > policy.MaxTimeout {
		return m.refused(ctx, fault.Limit("timeout", time.Time{}, "timeout exceeds the plan's maximum of %s", policy.MaxTimeout))
	}
	m.req = codecontext.Request{Key: sandboxcall.Key(c), Code: *in.Code, Timeout: timeout, MaxOutput: min(sandboxcall.MaxStream, p.Plan.MaxOutput)}
	if err := m.find(ctx); err != nil {
		return m.refused(ctx, err)
	}
	return m.within(ctx)
}

// Claims implements loop.Claimer: while there is no container, nothing else can tell whether
// the code began.
func (h *Interpreter) Claims(c *loop.Call) bool {
	var out Output
	return c.Item != nil && json.Unmarshal(c.Item.Use.Output, &out) == nil && out.Container == ""
}

// lookAgain is how long the outcome of code is waited for that is to be ended: it may be
// there already.
const lookAgain = 500 * time.Millisecond

var errEnded = errors.New("the run has ended")

// End implements loop.Ender: it interrupts code that another process has begun.
func (h *Interpreter) End(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(lookAgain, func() { cancel(errEnded) }).Stop()
	_, err := h.do(ctx, c, true)
	switch {
	case errors.Is(err, errEnded), errors.Is(err, loop.ErrUnknown), errors.Is(err, codecontext.ErrNotBegun):
		err = nil
	case fault.KindOf(err) == fault.Unavailable: // its machine is away, and perhaps with it the code
		err = nil
	}
	return nil, err
}

// find finds the container, or makes it. One that was under way in another process is not
// made again: what ran in it is gone with it.
func (m *call) find(ctx context.Context) (err error) {
	s := container.Settings{Name: "auto", Minutes: container.DefaultMinutes}
	name := m.Run.Sandbox
	if m.options.Container != "" {
		id, _ := m.options.Container.Sandbox() // it was checked with the request
		name = string(id)
	}
	if m.options.Container != "" || m.Begun {
		m.sb, err = m.Sandboxes.Get(ctx, m.caller, container.Session, name)
		if err == nil {
			var ok bool
			if s, ok = container.Of(m.sb); !ok || !container.Alive(m.sb) {
				err = fault.New(fault.NotFound, "the container %s has expired", container.IDOf(m.sb.ID))
			}
		}
		if err != nil && fault.KindOf(err) == fault.NotFound && m.Begun {
			return loop.ErrUnknown
		}
	} else {
		var spec *sandbox.Spec
		if spec, err = s.Spec(m.caller); err != nil {
			return err
		}
		spec.Memory, spec.Network = m.options.Memory, m.options.Network
		// A container of an earlier response keeps the memory that it was made with.
		if sb, found := m.Sandboxes.Get(ctx, m.caller, container.Session, name); found == nil && container.Alive(sb) {
			spec.Memory = 0
		}
		m.sb, _, err = m.Sandboxes.Ensure(ctx, m.caller, container.Session, name, spec)
	}
	if err != nil {
		return err
	}
	m.out.Container = container.IDOf(m.sb.ID)
	_, err = m.Sandboxes.Update(ctx, m.caller, container.Session, string(m.sb.ID), s.Used(m.caller, m.sb, m.req.Timeout))
	return err
}

// within runs the code in the container.
func (m *call) within(ctx context.Context) (*loop.Outcome, error) {
	u, err := m.Sandboxes.Use(ctx, m.caller, container.Session, string(m.sb.ID))
	if err != nil {
		return m.refused(ctx, err)
	}
	defer u.Close()
	all, err := u.Contexts()
	if err != nil {
		return nil, err
	}
	row := sandbox.Call{
		TraceID: execution.NewTraceID(), Source: Name, Session: m.sb.Session, Command: []byte(m.req.Code), Began: time.Now(),
		Mounts: storage.Labels(m.sb.Mounts), Metadata: map[string]string{"run": string(m.Run.ID)},
	}
	row.SetSandbox(m.sb)
	row.SetOrigin(m.Run.Origin(m.Request, Name))
	res, err := m.run(ctx, u, all)
	if errors.Is(err, codecontext.ErrDetached) {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, codecontext.ErrNoTrace) {
		return nil, loop.ErrUnknown
	}
	if err != nil && !m.out.begun {
		if failed := m.leave(ctx, &row, err, false); failed != nil {
			return nil, failed
		}
		return m.refused(ctx, err)
	}
	row.SetRun(pythonContext, res, err)
	if failed := m.leave(ctx, &row, nil, true); failed != nil {
		return nil, failed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if why := u.Stopped(ctx); why != nil {
			err = why
		}
		return m.lost(err)
	}
	if res.Status == codecontext.Ended {
		if why := u.Killed(ctx, *res.Exit); why != nil {
			return m.lost(why)
		}
	}
	return m.outcome(res, sandbox.RunHint(u, res, row.Began, m.out.logs[max(0, len(m.out.logs)-execution.MaxHintTail):]))
}

// run runs the code, or collects what it came to. When another process goes on with the
// run, the code goes on; otherwise it is interrupted as ctx ends.
func (m *call) run(ctx context.Context, u sandbox.Handle, all codecontext.Contexts) (*codecontext.Result, error) {
	work, stop := sandboxcall.Detach(ctx, codecontext.ErrDetached, nil)
	defer stop()
	if m.Begun {
		res, err := all.Collect(work, pythonContext, m.req, m.out.take)
		if !errors.Is(err, codecontext.ErrNotBegun) || m.ending {
			return res, err
		}
	}
	if err := m.place(work, u); err != nil {
		return nil, err
	}
	if m.Claim != nil {
		if err := m.Claim(work); err != nil {
			return nil, err
		}
	}
	return m.start(work, all)
}

// place puts the files of the run's input into the container's folder.
func (m *call) place(ctx context.Context, u sandbox.Handle) error {
	for name, data := range m.Files {
		if _, err := u.Guest().Create(ctx, path.Join(container.Dir, name), file.CreateOptions{Mode: container.FileMode}, bytes.NewReader(data)); err != nil {
			return fmt.Errorf("place the file %q: %w", name, err)
		}
	}
	return nil
}

// busyPoll is how often a context is asked for that runs another's code.
const busyPoll = 100 * time.Millisecond

// start runs the code once the context is idle. An interpreter that has ended is started
// again.
func (m *call) start(ctx context.Context, all codecontext.Contexts) (*codecontext.Result, error) {
	for began := time.Now(); ; {
		res, err := all.Run(ctx, pythonContext, m.req, m.out.take)
		if err == nil || fault.KindOf(err) != fault.Conflict || m.out.begun {
			return res, err
		}
		is, failed := all.Get(ctx, pythonContext)
		switch {
		case failed != nil || time.Since(began) > m.req.Timeout:
			return nil, err
		case is.Exit != nil:
			if _, err := all.Restart(ctx, pythonContext); err != nil {
				return nil, err
			}
			m.out.anew = true
		}
		select {
		case <-time.After(busyPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leave leaves the audit row of the call.
func (m *call) leave(ctx context.Context, row *sandbox.Call, err error, begun bool) error {
	if !row.Ended(ctx, err, begun) {
		return nil
	}
	return m.Sandboxes.Record(context.WithoutCancel(ctx), m.caller, *row)
}

// refused is the outcome of a call whose code was not run, because of what the caller may
// do or there is room for; or the error of the server that could not find out.
func (m *call) refused(ctx context.Context, err error) (*loop.Outcome, error) {
	r := sandboxcall.Rejected(ctx, err)
	if r == nil || errors.Is(err, loop.ErrUnknown) || fault.KindOf(err) == fault.Unavailable && m.Begun {
		return nil, err
	}
	m.out.write([]byte(err.Error()))
	out, err := m.ended(run.ItemFailed, "The code was not run: "+err.Error(), err.Error())
	if err != nil {
		return nil, err
	}
	return r.Mark(out, false), nil
}
