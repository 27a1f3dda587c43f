package directory

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/atoll-run/atoll/internal/control/placement"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// This file is the Directory of a gateway without sandboxes.

const (
	// maxTries limits the machines that one Ensure asks to create a sandbox.
	maxTries = 8
	// maxRounds limits how often Ensure reads the records again, after a machine disagreed with them.
	maxRounds = 5
	// roundPause is the pause before that. The events of a machine need it to reach the records.
	roundPause = 100 * time.Millisecond
	// retryAfter is when a caller may retry if no machine takes a sandbox.
	retryAfter = 5 * time.Second
)

// onAll asks all machines that can be reached, and joins their answers.
func (d *Directory) onAll(ctx context.Context, list func(sandbox.Node, context.Context) ([]runtime.ID, error)) (all []runtime.ID, err error) {
	machines, err := d.cfg.Peers.Candidates(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		node, err := d.cfg.Peers.Node(ctx, m.Executor)
		if err != nil {
			return nil, err
		}
		ids, err := list(node, ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}

// findRecord returns the record of grant's sandbox. By id it also returns a destroyed sandbox.
func (d *Directory) findRecord(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	if id := runtime.ID(nameOrID); id.Valid() {
		sb, err = d.cfg.Store.Get(ctx, grant.Tenant, id)
	} else {
		if err := sandbox.CheckSession(session); err != nil {
			return nil, err
		}
		if err := sandbox.CheckName(nameOrID); err != nil {
			return nil, err
		}
		sb, err = d.cfg.Store.Find(ctx, grant.Tenant, grant.Environment, session, nameOrID)
	}
	switch {
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return nil, err
	case err != nil, sb.Environment != grant.Environment:
		return nil, sandbox.Unknown(nameOrID)
	}
	return sb, nil
}

// list returns the records of p's sandboxes.
func (d *Directory) list(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error) {
	if session != "" {
		if err := sandbox.CheckSession(session); err != nil {
			return nil, err
		}
	}
	return d.cfg.Store.ListElsewhere(ctx, p.Tenant.ID, p.Environment.ID, session, "") // of every executor
}

// remote makes a call about grant's sandbox on its machine.
func remote[T any](ctx context.Context, d *Directory, grant *sandbox.Grant, session, nameOrID string, do func(sandbox.Node, *sandbox.Grant) (T, error)) (none T, err error) {
	sb, err := d.findRecord(ctx, grant, session, nameOrID)
	if err != nil {
		return none, err
	}
	if sb.State == sandbox.Destroyed {
		return none, sandbox.Unknown(nameOrID)
	}
	node, err := d.cfg.Peers.Node(ctx, sb.Executor)
	if err != nil {
		return none, err
	}
	out, err := do(node, grant)
	if err != nil {
		return none, err
	}
	if err := d.accept(ctx, grant, sb.Executor, out); err != nil {
		return none, err
	}
	return out, nil
}

// accept checks a machine's answer, and folds the sandboxes in the answers of commands into the
// records.
func (d *Directory) accept(ctx context.Context, grant *sandbox.Grant, executor string, answer any) error {
	var all []*sandbox.Sandbox
	switch answer := answer.(type) {
	case *sandbox.Sandbox:
		all = []*sandbox.Sandbox{answer}
	case []*sandbox.Sandbox:
		all = answer
	case sandbox.Handle:
		sb := answer.Sandbox()
		if sb.Tenant != grant.Tenant || sb.Environment != grant.Environment || sb.Executor != executor {
			answer.Close()
			return errForeign(executor)
		}
		return nil
	}
	for _, sb := range all {
		if sb.Tenant != grant.Tenant || sb.Environment != grant.Environment || sb.Executor != executor {
			return errForeign(executor)
		}
	}
	for _, sb := range all {
		d.fold(ctx, executor, sb)
	}
	return nil
}

// errForeign rejects the answer of a machine that may have been taken over.
func errForeign(executor string) error {
	return fault.New(fault.Internal, "the executor %s answered with a sandbox of another tenant, environment or machine; the call may have run. Run the same release of Atoll on all servers, and check the executor for intruders", executor)
}

// fold records a sandbox of a machine's answer, also for a caller that has left.
func (d *Directory) fold(ctx context.Context, executor string, sb *sandbox.Sandbox) {
	if d.cfg.Fold == nil {
		return
	}
	folding, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := d.cfg.Fold(folding, executor, sb); err != nil {
		d.cfg.Log.WarnContext(ctx, "cannot record a change of a sandbox yet; lists show it when the executor's event arrives", "sandbox_id", string(sb.ID), "executor", executor, "error", err)
	}
}

// reach is Reach without a local machine.
func (d *Directory) reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	executor, err := d.cfg.Store.Locate(ctx, id)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return nil, sandbox.Unknown(string(id))
	}
	if err != nil {
		return nil, err
	}
	node, err := d.cfg.Peers.Node(ctx, executor)
	if err != nil {
		return nil, err
	}
	h, err := node.Reach(ctx, id)
	if err != nil {
		return nil, err
	}
	if sb := h.Sandbox(); sb.ID != id || sb.Executor != executor {
		h.Close()
		return nil, errForeign(executor)
	}
	return h, nil
}

// ensure is Ensure without a local machine. It asks the sandbox's machine if the records have the
// sandbox, and otherwise places a new one. Another gateway may create or end the sandbox in between;
// the machine then disagrees, and ensure reads the records again.
func (d *Directory) ensure(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	if err := errors.Join(sandbox.CheckSession(session), sandbox.CheckName(name)); err != nil {
		return nil, false, err
	}
	ask := func(executor string) (*sandbox.Sandbox, bool, error) {
		node, err := d.cfg.Peers.Node(ctx, executor)
		if err != nil {
			return nil, false, err
		}
		sb, created, err := node.Ensure(ctx, grant, session, name, spec)
		if err != nil {
			return nil, false, err
		}
		if sb.Session != session || sb.Name != name {
			return nil, false, errForeign(executor)
		}
		return sb, created, d.accept(ctx, grant, executor, sb)
	}
	for round := range maxRounds {
		if round > 0 {
			select {
			case <-time.After(roundPause):
			case <-ctx.Done():
				return nil, false, context.Cause(ctx)
			}
		}
		there, err := d.cfg.Store.Find(ctx, grant.Tenant, grant.Environment, session, name)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return nil, false, err
		}
		var sb *sandbox.Sandbox
		var created bool
		if err == nil {
			sb, created, err = ask(there.Executor)
		} else {
			sb, created, err = d.place(ctx, ask)
		}
		if err == nil {
			return sb, created, nil
		}
		// The records say which machine has the sandbox. An executor could name any.
		if _, elsewhere := errors.AsType[*sandbox.ElsewhereError](err); !elsewhere {
			return nil, false, err
		}
	}
	return nil, false, &fault.Error{Kind: fault.Unavailable, RetryAfter: time.Second, Msg: "the sandbox \"" + name + "\" is being created or destroyed by other calls; nothing was started. Retry in a second"}
}

// place asks machines to create a sandbox until one does. It stops at a machine that may have created
// it.
func (d *Directory) place(ctx context.Context, ask func(executor string) (*sandbox.Sandbox, bool, error)) (*sandbox.Sandbox, bool, error) {
	all, err := d.cfg.Peers.Candidates(ctx)
	if err != nil {
		return nil, false, err
	}
	var refusal error // of the machine that placement prefers
	for _, c := range placement.Order(all, maxTries, rand.IntN) {
		sb, created, err := ask(c.Executor)
		if err == nil || ctx.Err() != nil || fault.KindOf(err) != fault.Unavailable || errors.Is(err, sandbox.ErrMayHaveRun) {
			return sb, created, err
		}
		if refusal == nil {
			refusal = err
		}
	}
	return nil, false, noExecutor(refusal)
}

// noExecutor is the fault for a sandbox that no machine takes; refusal is nil if no machine was asked.
func noExecutor(refusal error) error {
	f := &fault.Error{Kind: fault.Unavailable, Msg: "no executor is available for new sandboxes; retry in a few seconds, or ask the operator to add an executor", RetryAfter: retryAfter}
	if e, ok := errors.AsType[*fault.Error](refusal); ok {
		f.Msg, f.Err = "no executor is available for new sandboxes; one of them answered: "+e.Msg, refusal
		if e.RetryAfter > 0 {
			f.RetryAfter = e.RetryAfter
		}
	}
	return f
}
