package httpapi

import (
	"context"

	"github.com/atoll-run/atoll/internal/control/tokens"
	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TokenAuthenticator finds out whose token a text is. It fails with an Unauthorized fault.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, text string) (tenant.Principal, error)
}

// heldToToken holds a caller who has a token to what the token is for. A program's call is
// held by the token's scopes alone: the call that started the program was held to the rest.
func (c *Call) heldToToken(t *tenant.Token) error {
	if t == nil || webcall.Of(c.R.Context()) != nil {
		return nil
	}
	of := tokens.Call{Origins: c.R.Header.Values("Origin"), Session: c.Path("session_id"), Sandbox: c.Path("sandbox"), Of: sandbox.Default}
	if q := c.R.URL.Query(); q.Has("session") {
		of.Of = q.Get("session")
	}
	if c.op != nil {
		of.Operation, of.Name = c.op.ID, c.describe()
	}
	return of.Check(t)
}

// describe names a call's operation for people.
func (c *Call) describe() string {
	if c.op.ID != "" {
		return "the operation " + c.op.ID
	}
	return c.op.Method + " " + c.op.Path
}

// find finds the caller of a request by a bearer's text, which is a key or a token.
func (s *Server) find(ctx context.Context, text string) (tenant.Principal, error) {
	if _, ok := tenant.ParseToken(text); ok && s.tokens != nil {
		return s.tokens.AuthenticateToken(ctx, text)
	}
	return s.auth.Authenticate(ctx, text)
}
