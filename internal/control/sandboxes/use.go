package sandboxes

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Ref refers to a sandbox on behalf of a caller.
type Ref struct {
	Caller  *tenant.Principal
	Session string
	Name    string // or id
	Trail   *Trail // of the operation; nil for none
}

// Locate returns a Ref to a sandbox by its name in a session, or by its id. A nil session is the
// default one. For the session of an agent, the Caller of the Ref works in that session's
// environment. A token that is bound to a sandbox finds it by id, even if another sandbox has
// its name now.
func (s *Service) Locate(ctx context.Context, p *tenant.Principal, t *Trail, session *string, nameOrID string) (Ref, error) {
	in := sandbox.Default
	if session != nil {
		in = *session
		if err := sandbox.CheckSession(in); err != nil { // even if an id makes the session superfluous
			return Ref{}, err
		}
		var err error
		if p, err = s.enter(ctx, p, in); err != nil {
			return Ref{}, err
		}
	}
	if p != nil && p.Token != nil && p.Token.Sandbox.ID != "" && p.Token.Sandbox.Is(in, nameOrID) {
		nameOrID = p.Token.Sandbox.ID
	}
	return s.Refer(ctx, p, t, in, nameOrID), nil
}

// Refer returns a Ref to a sandbox of the caller's own environment.
func (s *Service) Refer(ctx context.Context, p *tenant.Principal, t *Trail, session, nameOrID string) Ref {
	r := Ref{p, session, nameOrID, t}
	if t != nil {
		t.By(p, session, nameOrID)
		if sb, err := s.Get(ctx, r); err == nil {
			t.On(sb)
		}
	}
	return r
}

// Use is one caller's use of a sandbox, which stays awake during the use.
type Use struct {
	sandbox.Handle
	caller *tenant.Principal
	trail  *Trail
}

// Within calls f with a sandbox, which it wakes if necessary. If the sandbox ends during f, the
// error says why, or is a Conflict fault.
func (s *Service) Within(ctx context.Context, r Ref, f func(*Use) error) error {
	h, err := s.cfg.Sandboxes.Use(ctx, r.Caller, r.Session, r.Name)
	if err != nil {
		return err
	}
	defer h.Close()
	r.Trail.On(h.Sandbox())
	r.Trail.begin()
	err = f(&Use{h, r.Caller, r.Trail})
	if errors.Is(err, process.ErrGone) {
		if why := h.Stopped(ctx); why != nil {
			return why
		}
		return fault.Wrap(fault.Conflict, err, "the sandbox ended during the call, which may be partly done; GET /v1/sandboxes/"+string(h.Sandbox().ID)+" shows whether it still exists")
	}
	return err
}

// With is Service.Within for an f that returns a result.
func With[T any](ctx context.Context, s *Service, r Ref, f func(*Use) (T, error)) (out T, err error) {
	err = s.Within(ctx, r, func(u *Use) (err error) {
		out, err = f(u)
		return err
	})
	return out, err
}

// WithinNew is Within, but first creates the sandbox with default settings if it does not exist.
func (s *Service) WithinNew(ctx context.Context, p *tenant.Principal, t *Trail, session, name string, f func(*Use) error) error {
	t.By(p, session, name)
	if _, _, err := s.ensure(ctx, p, t, session, name, nil); err != nil {
		return err
	}
	return s.Within(ctx, s.Refer(ctx, p, t, session, name), f)
}
