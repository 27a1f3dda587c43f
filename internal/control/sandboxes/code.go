package sandboxes

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const (
	codeTimeout = 30 * time.Second // of code for which the caller sets none
	codeOutput  = 10 << 20         // bytes of each stream

	// Code that waits for its turn asks whether the context is idle, in growing pauses.
	busyPoll    = 50 * time.Millisecond
	busyPollMax = time.Second
	maxTries    = 3 // in a context that is idle
)

// CodeRun describes code to run in a context.
type CodeRun struct {
	Context codecontext.ID
	Code    string
	Timeout time.Duration // see Service.CodeTimeout and Service.MaxCodeTimeout
	// InTurn waits while the context runs other code, and restarts a context that has ended.
	// Otherwise both are a Conflict fault.
	InTurn bool
	// Hinted asks for CodeResult.Hint.
	Hinted bool
}

// CodeResult says how code ended.
type CodeResult struct {
	*codecontext.Result
	Killed error  // why the server ended the interpreter; nil if it did not
	Hint   string // how to fix a failure that the network policy may have caused
}

// MaxCodeTimeout returns how long p's plan lets code run.
func (s *Service) MaxCodeTimeout(p *tenant.Principal) time.Duration {
	return s.cfg.Policies.Policy(p).MaxTimeout
}

// CodeTimeout returns the timeout of code for which p sets timeout; 0 selects the default. A
// timeout above the plan's maximum is an Exhausted fault.
func (s *Service) CodeTimeout(p *tenant.Principal, timeout time.Duration) (time.Duration, error) {
	if timeout == 0 {
		timeout = codeTimeout
	}
	if limit := s.MaxCodeTimeout(p); timeout > limit {
		return 0, fault.Limit("timeout", time.Time{}, "timeout_ms exceeds your plan's maximum of %d", limit.Milliseconds())
	}
	return timeout, nil
}

// RunCode runs code in a context and calls take with its output, in whole characters. It returns an error if the end
// of the code is unknown. The audit row is written before RunCode returns.
func (u *Use) RunCode(ctx context.Context, in codecontext.Contexts, r *CodeRun, take func(codecontext.Event) error) (*CodeResult, error) {
	u.trail.Asks(r.Code)
	u.trail.late()
	run := &codeRun{CodeRun: r, in: in, take: take}
	req := codecontext.Request{Code: r.Code, Timeout: r.Timeout, MaxOutput: min(codeOutput, u.caller.Plan.MaxOutput)}
	began := time.Now()
	res, err := run.run(ctx, req)
	if failed := u.trail.leaveRun(ctx, r.Context, res, err); failed != nil {
		return nil, failed
	}
	if err != nil {
		if why := u.Stopped(ctx); why != nil {
			err = why
		}
		return nil, err
	}
	for s, rest := range run.held {
		if len(rest) > 0 {
			if err := take(codecontext.Event{Stream: process.Stream(s), Text: rest}); err != nil {
				return nil, err
			}
		}
	}
	out := &CodeResult{Result: res}
	if res.Status == codecontext.Ended {
		out.Killed = u.Killed(ctx, *res.Exit)
	}
	if r.Hinted {
		out.Hint = sandbox.RunHint(u, res, began, run.tails[process.Stderr], run.tails[process.Stdout])
	}
	return out, nil
}

// codeRun is one RunCode.
type codeRun struct {
	*CodeRun
	in    codecontext.Contexts
	take  func(codecontext.Event) error
	begun bool                     // there was output
	held  [process.Terminal][]byte // the beginning of a character, by stream
	tails [process.Terminal]execution.Tail
}

func (r *codeRun) event(e codecontext.Event) error {
	r.begun = true
	if r.Hinted && e.Display == nil && len(e.Text) > 0 {
		r.tails[e.Stream].Add(e.Text)
	}
	if e.Display != nil || len(e.Text) == 0 {
		return r.take(e)
	}
	text := append(r.held[e.Stream], e.Text...)
	whole := wire.WholeRunes(text)
	r.held[e.Stream] = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return nil
	}
	return r.take(codecontext.Event{Stream: e.Stream, Text: text[:whole]})
}

func (r *codeRun) run(ctx context.Context, req codecontext.Request) (*codecontext.Result, error) {
	for tries, wait := 0, busyPoll; ; wait = min(wait*5/4, busyPollMax) {
		res, err := r.in.Run(ctx, r.Context, req, r.event)
		if !r.InTurn || fault.KindOf(err) != fault.Conflict || r.begun {
			return res, err
		}
		is, failed := r.in.Get(ctx, r.Context)
		switch {
		case failed != nil:
			return nil, err
		case is.Exit != nil && tries < maxTries:
			if _, err := r.in.Restart(ctx, r.Context); err != nil {
				return nil, err
			}
		case !is.Running && tries >= maxTries:
			return nil, err
		}
		if !is.Running {
			tries++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
