package response

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Turn is what a session's turn is asked for.
type Turn struct {
	Of    *session.Session
	Agent string // id of the agent that is asked
	// In is what a response would be asked for, without the conversation before it. Without
	// Input, the turn goes on with Answers.
	In      *CreateResponse
	After   int64     // the event after which its conversation begins
	Spent   run.Total // what the turns before came to
	Answers []run.Answer
	// Approved are the calls that the turn begins with.
	Approved []run.Approved
	// Tools are what no response can ask for.
	Tools   []run.Tool
	Servers []mcptool.Server
	Vaults  []vault.ID // of the session
	// Govern makes of the tools what the agent's policy says.
	Govern   func(*run.Request) error
	Compact  *run.Compact
	RetryFor *time.Duration // of the agent; nil for the server's setting
	NoWeb    bool           // code does not call the services of the web
	Stop     []string       // texts before which an answer ends
	Within   time.Duration  // that calls wait for the client; 0 for ever
	Shown    bool           // it is not begun: what the model would get is shown
	// Outcome is what the turn is to come to: that of the last message, or one of an earlier turn;
	// nil for none. Check is the command of a new one; nil for none.
	Outcome *run.Outcome
	Check   *sandboxtool.Check
}

// Begin begins a turn, which goes on without its caller. done is closed when this process
// drives it no more.
func (h *Handlers) Begin(c *httpapi.Call, t *Turn) (r *run.Run, done <-chan struct{}, err error) {
	r, q, err := h.Prepare(c, t)
	if err != nil {
		return nil, nil, err
	}
	done, err = h.Loop.Begin(c.Context(), r, q, h.MaxUnderWay, nil)
	return r, done, err
}

// Prepare returns the run of a turn.
func (h *Handlers) Prepare(c *httpapi.Call, t *Turn) (*run.Run, *run.Request, error) {
	if c.Caller.Environment.ID != t.Of.Environment {
		return nil, nil, fault.New(fault.Conflict, "the session is of another environment: send messages with a key of that one")
	}
	r, q, err := h.Compose(c.Context(), c.Caller, t)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Draining(); err != nil {
		return nil, nil, err
	}
	return r, q, h.admit(c, q.Models[0])
}

// Compose is what Prepare returns, where nothing is begun.
func (h *Handlers) Compose(ctx context.Context, caller *tenant.Principal, t *Turn) (*run.Run, *run.Request, error) {
	t.In.answers = len(t.Answers) > 0 || t.Shown
	r, q, err := h.part(ctx, caller, t)
	if err != nil {
		return nil, nil, err
	}
	r.Session, r.Sandbox = string(t.Of.ID), t.Of.Sandbox
	q.Publish, q.Approved = true, t.Approved
	q.Limits.Session = t.Of.Left()
	q.Turn = &run.Turn{Session: r.Session, After: t.After, Until: t.Of.Events, Spent: t.Spent, Answers: t.Answers, Within: t.Within}
	if err := t.Govern(q); err != nil {
		return nil, nil, err
	}
	return r, q, h.outcome(ctx, caller, q, t)
}

// outcome gives a run what it is to come to.
func (h *Handlers) outcome(ctx context.Context, caller *tenant.Principal, q *run.Request, t *Turn) (err error) {
	o := t.Outcome
	if o == nil {
		return nil
	}
	if t.Check != nil {
		if o.Check, err = sandboxtool.NewCheck(q.Tools, t.Check); err != nil {
			return err
		}
	}
	if o.Model != "" {
		if _, _, err := h.Models.Use(ctx, caller.Tenant.ID, o.Model); err != nil {
			return missing(err, o.Model)
		}
	}
	q.Outcome = o
	return nil
}

// part is what the agent of a turn is asked.
func (h *Handlers) part(ctx context.Context, caller *tenant.Principal, t *Turn) (*run.Run, *run.Request, error) {
	t.In.lenient, t.In.noWeb, t.In.more, t.In.servers, t.In.vaults = true, t.NoWeb, t.Tools, t.Servers, t.Vaults
	r, q, err := h.prepare(ctx, caller, t.In)
	if err == nil {
		q.Agent = t.Agent
		if q.NoWeb, q.Stop, q.Compact = t.NoWeb, t.Stop, t.Compact; t.RetryFor != nil {
			q.RetryFor = t.RetryFor
		}
	}
	return r, q, err
}

// Part is what another agent is asked that has a part in a turn, for a run that is prepared or
// under way, without the conversation. Of a Turn it goes by In, Tools, Servers, Vaults,
// Govern, NoWeb and Stop.
func (h *Handlers) Part(ctx context.Context, caller *tenant.Principal, of run.ID, t *Turn) (*run.Request, error) {
	t.In.answers, t.In.run = true, of
	_, q, err := h.part(ctx, caller, t)
	if err != nil {
		return nil, err
	}
	return q, t.Govern(q)
}

// Start begins a turn that is prepared.
func (h *Handlers) Start(c *httpapi.Call, r *run.Run, q *run.Request) error {
	_, err := h.Loop.Begin(c.Context(), r, q, h.MaxUnderWay, nil)
	return err
}

// End waits for the end of a turn.
func (h *Handlers) End(ctx context.Context, r *run.Run, done <-chan struct{}) (*run.State, error) {
	if err := h.wait(ctx, r, done); err != nil {
		return nil, err
	}
	return h.Loop.State(ctx, r.ID)
}

// Interrupt ends the turn of a session that is under way.
func (h *Handlers) Interrupt(ctx context.Context, of *session.Session) error {
	err := h.Loop.Cancel(ctx, of.Tenant, of.Run)
	if fault.KindOf(err) == fault.Conflict { // it has ended by itself
		return nil
	}
	return err
}

// Follow passes on what readers are told of a turn until it has ended: from its beginning with
// first, and otherwise without pieces of items that are on record already. What was published
// of it may be gone.
func (h *Handlers) Follow(ctx context.Context, t tenant.ID, id run.ID, first bool, yield func(events []run.Event) error) error {
	recorded := 0
	if !first {
		s, err := h.Loop.State(ctx, id)
		if err != nil {
			return err
		}
		recorded = len(s.Output)
	}
	err := h.Loop.Follow(ctx, t, id, func(events []run.Event) error {
		return yield(slices.DeleteFunc(events, func(e run.Event) bool { return e.Delta != nil && e.Delta.Index < recorded }))
	})
	if errors.Is(err, run.ErrNoEvents) {
		return nil
	}
	return err
}

// Leave removes what a session that is deleted or archived had: the records of the turns of
// deleted ones, and its sandbox.
func (h *Handlers) Leave(c *httpapi.Call, of *session.Session) {
	h.free(c, of, "", of.Sandbox)
	h.free(c, of, string(of.Agent), string(of.ID))
	ctx := context.WithoutCancel(c.Context())
	if err := h.Loop.Expire(ctx); err != nil {
		c.Log().WarnContext(ctx, "the turns of a session stay for a while", "session", of.ID, "error", err)
	}
}

// Free ends a sandbox of a session.
func (h *Handlers) Free(c *httpapi.Call, of *session.Session, sandbox string) {
	h.free(c, of, "", sandbox)
}

func (h *Handlers) free(c *httpapi.Call, of *session.Session, agent, turn string) {
	ctx := context.WithoutCancel(c.Context())
	caller := *c.Caller
	caller.Environment.ID = of.Environment
	if err := h.Files.EndTurn(ctx, &caller, agent, turn); err != nil {
		c.Log().WarnContext(ctx, "a sandbox of a session stays for a while", "session", of.ID, "error", err)
	}
}
