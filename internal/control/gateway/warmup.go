package gateway

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// warmUpCode stands for the code of a Job that is never run.
const warmUpCode = "\n"

// Expected returns a job as the next execution like those of u would be started with,
// so that a sandbox can be made ahead for it; nothing is recorded. p is the caller who
// has u's key now. An error says why such an execution would be refused at this
// moment, or could not use that sandbox.
func (g *Gateway) Expected(p *tenant.Principal, u execution.Use) (execution.Job, error) {
	switch {
	case !p.May(tenant.ScopeExecute):
		return execution.Job{}, fault.New(fault.Forbidden, "this key lacks the scope %q; ask an administrator to add it", tenant.ScopeExecute)
	case p.Environment.ID != u.Environment:
		return execution.Job{}, fault.New(fault.Conflict, "the key's environment has changed")
	}
	policy := g.Policy(p)
	req := execution.Request{Code: warmUpCode, Language: u.Language, Timeout: policy.DefaultTimeout()}
	call := Call{Source: execution.SourceAPI, Delivery: execution.Inline}
	if err := g.admissible(p, policy, req, call); err != nil {
		return execution.Job{}, err
	}
	mounts, err := storage.Resolve(p.Storage, nil)
	if err != nil {
		return execution.Job{}, err
	}
	e := newExecution(p, req, call, [32]byte{})
	if u.Thread {
		e.Thread = "expected" // decides about the kind of sandbox; it is never opened
	}
	return g.job(p, e, req, call, mounts), nil
}
