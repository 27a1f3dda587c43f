// Package tokens holds the use cases of tokens, which a key makes for a caller that must not have the
// key, and the rules of the operations that are open to them.
package tokens

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Tokens makes, lists and ends tokens; *tenant.Tokens implements it.
type Tokens interface {
	Create(ctx context.Context, p *tenant.Principal, t tenant.Token, life time.Duration) (tenant.Token, string, error)
	List(ctx context.Context, p *tenant.Principal, cursor string, limit int) ([]tenant.Token, string, error)
	Revoke(ctx context.Context, p *tenant.Principal, id string) error
}

// Sessions has the sessions of agents that tokens are bound to.
type Sessions interface {
	Get(ctx context.Context, t tenant.ID, id session.ID) (*session.Session, error)
}

// Sandboxes has the named sandboxes that tokens are bound to.
type Sandboxes interface {
	Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error)
}

// Service makes, lists and ends tokens. All fields are required.
type Service struct {
	Tokens
	Sessions  Sessions
	Sandboxes Sandboxes
}

// New describes a token to make. Nil fields were omitted.
type New struct {
	Life                                *time.Duration
	Scopes, Operations, Rights, Origins *[]string
	Session, Sandbox, SandboxSession    *string
	MaxCost                             *float64
	MaxExecutions                       *int64
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Make makes a token for the caller, and returns it with its text.
func (s *Service) Make(ctx context.Context, p *tenant.Principal, in *New) (made tenant.Token, text string, err error) {
	t, err := in.domain()
	if err != nil {
		return made, "", err
	}
	if err := s.bind(ctx, p, in, &t); err != nil {
		return made, "", err
	}
	if t.Scopes, err = scopes(p, in, &t); err != nil {
		return made, "", err
	}
	life := tenant.DefaultTokenLife
	if in.Life != nil {
		if *in.Life < time.Second || *in.Life > tenant.MaxTokenLife {
			return made, "", invalid("expires_in must be 1 to %d seconds", int(tenant.MaxTokenLife.Seconds()))
		}
		life = *in.Life
	}
	return s.Tokens.Create(ctx, p, t, life)
}

// Bounds of max_cost, as those of a response.
const (
	minCost = 0.000001
	maxCost = 1_000_000
)

// domain reads what does not depend on the caller.
func (in *New) domain() (t tenant.Token, err error) {
	if in.Scopes == nil && in.Operations == nil && in.Session == nil && in.Sandbox == nil {
		return t, invalid("name what the token is for, by at least one of scopes, operations, session and sandbox")
	}
	if in.Session != nil && in.Sandbox != nil {
		return t, invalid("session and sandbox: a token is bound to one of them; make two")
	}
	if in.SandboxSession != nil && in.Sandbox == nil {
		return t, invalid("sandbox_session goes with sandbox")
	}
	if in.MaxCost != nil {
		if !(*in.MaxCost >= minCost && *in.MaxCost <= maxCost) {
			return t, invalid("max_cost must be between 0.000001 and %d US dollars", int64(maxCost))
		}
		t.MaxCost = usage.MoneyOf(*in.MaxCost)
	}
	if in.MaxExecutions != nil {
		if *in.MaxExecutions < 1 || *in.MaxExecutions > 1_000_000_000 {
			return t, invalid("max_executions must be between 1 and 1000000000")
		}
		t.MaxExecutions = *in.MaxExecutions
	}
	if in.Origins != nil {
		if t.Origins = *in.Origins; len(t.Origins) == 0 {
			return t, invalid("origins must name at least one origin; leave it out for any")
		}
	}
	if in.Rights != nil {
		for _, r := range *in.Rights {
			t.Rights = append(t.Rights, tenant.TokenRight(clip(r)))
		}
	}
	if in.Operations != nil {
		if t.Operations = *in.Operations; len(t.Operations) == 0 {
			return t, invalid("operations must name at least one operation; leave it out for all that are open to tokens")
		}
		for _, id := range t.Operations {
			if _, open := Operation(id); !open {
				return t, invalid("operations: %q is not open to tokens; docs/reference/tokens.md lists those that are", clip(id))
			}
		}
	}
	return t, nil
}

// bind finds the session or sandbox that a token is bound to, and refuses operations that
// cannot be held to the token's bounds.
func (s *Service) bind(ctx context.Context, p *tenant.Principal, in *New, t *tenant.Token) error {
	switch {
	case in.Session != nil:
		id := session.ID(*in.Session)
		if !id.Valid() {
			return fault.New(fault.NotFound, "session: not found")
		}
		found, err := s.Sessions.Get(ctx, p.Tenant.ID, id)
		if err != nil {
			return missing(err, "session")
		}
		t.Session = string(found.ID)
	case in.Sandbox != nil:
		of := sandbox.Default
		if in.SandboxSession != nil {
			of = *in.SandboxSession
		}
		if err := sandbox.CheckSession(of); err != nil {
			return err
		}
		found, err := s.Sandboxes.Get(ctx, p, of, *in.Sandbox)
		if err != nil {
			return missing(err, "sandbox")
		}
		t.Sandbox = tenant.TokenSandbox{ID: string(found.ID), Session: found.Session, Name: found.Name}
		if t.MaxCost > 0 || t.MaxExecutions > 0 {
			return invalid("max_cost and max_executions cannot hold the programs of a named sandbox: leave them out, and bound the sandbox by its limits and lifetime")
		}
	}
	for _, id := range t.Operations {
		rule, _ := Operation(id)
		if err := rule.Holds(t); err != nil {
			return invalid("operations: %s: %s", id, err)
		}
	}
	return nil
}

// missing says which field names what is not there.
func missing(err error, field string) error {
	if fault.KindOf(err) == fault.NotFound {
		return fault.Wrap(fault.NotFound, err, field+": not found")
	}
	return err
}

// scopes returns the scopes of a new token.
func scopes(p *tenant.Principal, in *New, t *tenant.Token) (all []tenant.Scope, err error) {
	switch {
	case in.Scopes != nil:
		if len(*in.Scopes) == 0 {
			return nil, invalid("scopes must name at least one scope")
		}
		for _, s := range *in.Scopes {
			all = append(all, tenant.Scope(clip(s)))
		}
		for _, id := range t.Operations {
			if rule, _ := Operation(id); rule.Scope != "" && !slices.Contains(all, rule.Scope) {
				return nil, invalid("operations: %s needs the scope %s, which scopes does not have", id, rule.Scope)
			}
		}
	case t.Bound():
		// The scopes let an agent act in its session, and a program in its sandbox.
		for _, s := range tenant.TokenScopes {
			if p.May(s) {
				all = append(all, s)
			}
		}
	default:
		for _, id := range t.Operations {
			if rule, _ := Operation(id); rule.Scope != "" {
				all = append(all, rule.Scope)
			}
		}
		if len(all) == 0 { // for models alone, which every key may see
			all = []tenant.Scope{tenant.ScopeRead}
		}
	}
	return all, nil
}

// clip keeps what is shown of a caller's text short.
func clip(text string) string { return text[:min(len(text), 64)] }
