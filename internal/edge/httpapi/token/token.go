// Package token serves tokens: what a key makes for a caller, such as a web page, that must
// not have the key.
package token

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Tokens make, list and end tokens; a *tenant.Tokens does.
type Tokens interface {
	Create(ctx context.Context, p *tenant.Principal, t tenant.Token, life time.Duration) (tenant.Token, string, error)
	List(ctx context.Context, p *tenant.Principal, cursor string, limit int) ([]tenant.Token, string, error)
	Revoke(ctx context.Context, p *tenant.Principal, id string) error
}

// Sessions are the sessions of agents that tokens are bound to.
type Sessions interface {
	Get(ctx context.Context, t tenant.ID, id session.ID) (*session.Session, error)
}

// Sandboxes are the named sandboxes that tokens are bound to.
type Sandboxes interface {
	Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error)
}

// Handlers serve tokens. All fields are required.
type Handlers struct {
	Tokens    Tokens
	Sessions  Sessions
	Sandboxes Sandboxes
}

// Operations are those of /v1/tokens.
func (h *Handlers) Operations() []httpapi.Operation {
	const all, one = "/v1/tokens", "/v1/tokens/{token_id}"
	ops := []httpapi.Operation{
		{
			Method: http.MethodPost, Path: all, ID: "createToken", Summary: "Make a short-lived token for a web page",
			Description: "The token can do less than the key that makes it, and stops with it. Give it to what must not have the key. A token cannot make tokens.",
			Body:        httpapi.JSON(NewToken{ExpiresIn: new(wire.Seconds(900)), Operations: &[]string{"runProgram", "getOutput"}, Origins: &[]string{"https://app.example.com"}, MaxExecutions: new(int64(20))}),
			Answers: []httpapi.Answer{
				httpapi.Created(Token{}, "It works at once. token is shown here alone."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the session or sandbox does not exist, or belongs to another tenant."),
				httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the key has the most tokens at a time."),
			},
			Serve: httpapi.Takes(h.create),
		},
		{
			Method: http.MethodGet, Path: all, ID: "listTokens", Summary: "List the key's living tokens, newest first", Description: "Lists the valid tokens that the calling key has created.", Params: httpapi.PageParams(20, 100),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Token]{}, "A page, without the tokens themselves.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteToken", Summary: "End a token at once", Description: "On other servers of the installation that takes up to 10 seconds. Atoll stops the work that the token started, and closes its streams.",
			Params: []httpapi.Param{{Name: "token_id", In: httpapi.InPath, Doc: "Id of a token of the key."}},
			Answers: []httpapi.Answer{
				httpapi.NoContent("It is refused from now on. Again is no error."),
				httpapi.Refusal(http.StatusNotFound, "not_found: the key has not created this token."),
			},
			Serve: httpapi.Does(h.delete),
		},
	}
	for i := range ops {
		ops[i].Tag, ops[i].Access = "tokens", httpapi.AnyKey
	}
	return ops
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Token], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	page, next, err := h.Tokens.List(c.Context(), c.Caller, cursor, int(c.Int("limit")))
	return httpapi.Page[Token]{Data: httpapi.Each(page, tokenOf), NextPage: httpapi.OrNull(next)}, err
}

func (h *Handlers) delete(c *httpapi.Call) error {
	return h.Tokens.Revoke(c.Context(), c.Caller, c.Path("token_id"))
}

func (h *Handlers) create(c *httpapi.Call, in *NewToken) (out Token, err error) {
	t, err := in.domain()
	if err != nil {
		return out, err
	}
	if err := h.bind(c, in, &t); err != nil {
		return out, err
	}
	if t.Scopes, err = scopes(c.Caller, in, &t); err != nil {
		return out, err
	}
	life := tenant.DefaultTokenLife
	if in.ExpiresIn != nil {
		if *in.ExpiresIn < 1 || in.ExpiresIn.Duration() > tenant.MaxTokenLife {
			return out, httpapi.Invalid("expires_in must be 1 to %d seconds", int(tenant.MaxTokenLife.Seconds()))
		}
		life = in.ExpiresIn.Duration()
	}
	made, text, err := h.Tokens.Create(c.Context(), c.Caller, t, life)
	if err != nil {
		return out, err
	}
	out = tokenOf(made)
	out.Token = text
	return out, nil
}

// Bounds of max_cost, as those of a response.
const (
	minCost = 0.000001
	maxCost = 1_000_000
)

// domain reads what does not depend on the caller.
func (in *NewToken) domain() (t tenant.Token, err error) {
	if in.Scopes == nil && in.Operations == nil && in.Session == nil && in.Sandbox == nil {
		return t, httpapi.Invalid("name what the token is for, by at least one of scopes, operations, session and sandbox")
	}
	if in.Session != nil && in.Sandbox != nil {
		return t, httpapi.Invalid("session and sandbox: a token is bound to one of them; make two")
	}
	if in.SandboxSession != nil && in.Sandbox == nil {
		return t, httpapi.Invalid("sandbox_session goes with sandbox")
	}
	if in.MaxCost != nil {
		if !(*in.MaxCost >= minCost && *in.MaxCost <= maxCost) {
			return t, httpapi.Invalid("max_cost must be between 0.000001 and %d US dollars", int64(maxCost))
		}
		t.MaxCost = usage.MoneyOf(*in.MaxCost)
	}
	if in.MaxExecutions != nil {
		if *in.MaxExecutions < 1 || *in.MaxExecutions > 1_000_000_000 {
			return t, httpapi.Invalid("max_executions must be between 1 and 1000000000")
		}
		t.MaxExecutions = *in.MaxExecutions
	}
	if in.Origins != nil {
		if t.Origins = *in.Origins; len(t.Origins) == 0 {
			return t, httpapi.Invalid("origins must name at least one origin; leave it out for any")
		}
	}
	if in.Rights != nil {
		for _, r := range *in.Rights {
			t.Rights = append(t.Rights, tenant.TokenRight(clip(r)))
		}
	}
	if in.Operations != nil {
		if t.Operations = *in.Operations; len(t.Operations) == 0 {
			return t, httpapi.Invalid("operations must name at least one operation; leave it out for all that are open to tokens")
		}
		for _, id := range t.Operations {
			if _, open := httpapi.TokenOperation(id); !open {
				return t, httpapi.Invalid("operations: %q is not open to tokens; docs/reference/tokens.md lists those that are", clip(id))
			}
		}
	}
	return t, nil
}

// bind finds the session or sandbox that a token is bound to, and refuses operations that
// cannot be held to the token's bounds.
func (h *Handlers) bind(c *httpapi.Call, in *NewToken, t *tenant.Token) error {
	switch {
	case in.Session != nil:
		id := session.ID(*in.Session)
		if !id.Valid() {
			return fault.New(fault.NotFound, "session: not found")
		}
		s, err := h.Sessions.Get(c.Context(), c.Caller.Tenant.ID, id)
		if err != nil {
			return missing(err, "session")
		}
		t.Session = string(s.ID)
	case in.Sandbox != nil:
		of := sandbox.Default
		if in.SandboxSession != nil {
			of = string(*in.SandboxSession)
		}
		if err := sandbox.CheckSession(of); err != nil {
			return err
		}
		s, err := h.Sandboxes.Get(c.Context(), c.Caller, of, string(*in.Sandbox))
		if err != nil {
			return missing(err, "sandbox")
		}
		t.Sandbox = tenant.TokenSandbox{ID: string(s.ID), Session: s.Session, Name: s.Name}
		if t.MaxCost > 0 || t.MaxExecutions > 0 {
			return httpapi.Invalid("max_cost and max_executions cannot hold the programs of a named sandbox: leave them out, and bound the sandbox by its limits and lifetime")
		}
	}
	for _, id := range t.Operations {
		rule, _ := httpapi.TokenOperation(id)
		if err := rule.Holds(t); err != nil {
			return httpapi.Invalid("operations: %s: %s", id, httpapi.Reason(err))
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

// scopes are those that a token gets.
func scopes(p *tenant.Principal, in *NewToken, t *tenant.Token) (all []tenant.Scope, err error) {
	switch {
	case in.Scopes != nil:
		if len(*in.Scopes) == 0 {
			return nil, httpapi.Invalid("scopes must name at least one scope")
		}
		for _, s := range *in.Scopes {
			all = append(all, tenant.Scope(clip(s)))
		}
		for _, id := range t.Operations {
			if rule, _ := httpapi.TokenOperation(id); rule.Scope != "" && !slices.Contains(all, rule.Scope) {
				return nil, httpapi.Invalid("operations: %s needs the scope %s, which scopes does not have", id, rule.Scope)
			}
		}
	case t.Bound():
		// What an agent does in its session, and a program in its sandbox, is not cut off.
		for _, s := range tenant.TokenScopes {
			if p.May(s) {
				all = append(all, s)
			}
		}
	default:
		for _, id := range t.Operations {
			if rule, _ := httpapi.TokenOperation(id); rule.Scope != "" {
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
