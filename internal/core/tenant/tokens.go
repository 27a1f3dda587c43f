package tenant

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Limits of tokens.
const (
	DefaultTokenLife = 15 * time.Minute
	MaxTokenLife     = 24 * time.Hour
	MaxTokens        = 10_000 // per key at a time
	MaxOrigins       = 16     // per token
	// KeepTokens is how long Atoll keeps the record of an expired token, because work that it
	// started may still run.
	KeepTokens = 7 * 24 * time.Hour
)

// TokenStore keeps tokens; a Store implements it. It returns a NotFound fault for an unknown token.
type TokenStore interface {
	// CreateToken records a token that expires after life by the store's clock. It returns an
	// Exhausted fault if the token's key has most valid ones. It deletes tokens that expired longer
	// than keep ago.
	CreateToken(ctx context.Context, t Token, life time.Duration, most int, keep time.Duration) (Token, error)
	// Tokens lists the valid tokens of a key, newest first.
	Tokens(ctx context.Context, tenant ID, key, cursor string, limit int) (page []Token, next string, err error)
	// RevokeToken revokes a token of a key by the store's clock. Revoking again succeeds.
	RevokeToken(ctx context.Context, tenant ID, key, id string) (Token, error)
	// Bearer returns the caller that holds a token, by its hash, narrowed to the token. It returns
	// a NotFound fault if the token is revoked or has expired, or if Principal would not find its
	// key. left is the token's remaining validity.
	Bearer(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	// TokenHolder is Bearer by the token's id. With begun it also accepts an expired token, for
	// work that the token started.
	TokenHolder(ctx context.Context, tenant ID, id string, begun bool) (Principal, error)
	// TokenSpent returns the money charged to a token and its limit. A limit of 0 means that the
	// token is unlimited or no longer exists.
	TokenSpent(ctx context.Context, id string) (used, most usage.Money, err error)
}

// Tokens creates and revokes tokens.
type Tokens struct {
	store     TokenStore
	authority *Authority
}

// NewTokens returns Tokens over a store. authority drops revoked tokens from its cache.
func NewTokens(store TokenStore, authority *Authority) *Tokens { return &Tokens{store, authority} }

// Create creates a token with the limits in t for the caller p, who must use a key. The second
// result is the token itself, which Atoll never shows again.
func (a *Tokens) Create(ctx context.Context, p *Principal, t Token, life time.Duration) (Token, string, error) {
	switch {
	case p.Token != nil:
		return Token{}, "", errTokenOfToken
	case life < time.Second || life > MaxTokenLife:
		return Token{}, "", invalid("expires_in must be between 1 and %d seconds", int(MaxTokenLife.Seconds()))
	case len(t.Scopes) == 0:
		return Token{}, "", fault.New(fault.Forbidden, "this key has none of the scopes that a token can have: %s", list(TokenScopes))
	case len(t.Origins) > MaxOrigins:
		return Token{}, "", invalid("origins must name at most %d origins", MaxOrigins)
	case t.MaxCost < 0 || t.MaxExecutions < 0:
		return Token{}, "", invalid("max_cost and max_executions must not be negative")
	}
	for _, r := range t.Rights {
		if !slices.Contains(TokenRights, r) {
			return Token{}, "", invalid("rights: %q is not a right of tokens; use confirm or outcomes", clip(string(r)))
		}
	}
	for _, s := range t.Scopes {
		switch {
		case !slices.Contains(TokenScopes, s):
			return Token{}, "", invalid("scopes: a token can have %s, but not %s", list(TokenScopes), s)
		case !p.May(s):
			return Token{}, "", fault.New(fault.Forbidden, "scopes: this key lacks the scope %q, so its tokens cannot have it", s)
		}
	}
	for _, o := range t.Origins {
		if err := CheckOrigin(o); err != nil {
			return Token{}, "", err
		}
	}
	text := NewToken()
	t.ID, t.Tenant, t.Key, t.Hash = NewTokenID(p.Key.ID), p.Tenant.ID, p.Key.ID, HashKey(text)
	t.Scopes = slices.Compact(slices.Sorted(slices.Values(t.Scopes)))
	t.Rights = slices.Compact(slices.Sorted(slices.Values(t.Rights)))
	t.Operations = slices.Compact(slices.Sorted(slices.Values(t.Operations)))
	t.Origins = slices.Compact(slices.Sorted(slices.Values(t.Origins)))
	made, err := a.store.CreateToken(ctx, t, life, MaxTokens, KeepTokens)
	return made, text, err
}

var errTokenOfToken = fault.New(fault.Forbidden, "a token cannot create, list or revoke tokens: use the API key")

// List returns the valid tokens of the caller's key, newest first.
func (a *Tokens) List(ctx context.Context, p *Principal, cursor string, limit int) (page []Token, next string, err error) {
	if p.Token != nil {
		return nil, "", errTokenOfToken
	}
	return a.store.Tokens(ctx, p.Tenant.ID, p.Key.ID, cursor, limit)
}

// Revoke revokes a token of the caller's key: in this process immediately, in others within 10
// seconds. Work that it started ends as for a revoked key.
func (a *Tokens) Revoke(ctx context.Context, p *Principal, id string) error {
	if p.Token != nil {
		return errTokenOfToken
	}
	t, err := a.store.RevokeToken(ctx, p.Tenant.ID, p.Key.ID, id)
	if err == nil {
		a.authority.drop(t.Hash)
	}
	return err
}

func list(scopes []Scope) string {
	text := ""
	for i, s := range scopes {
		switch {
		case i == 0:
		case i == len(scopes)-1:
			text += " and "
		default:
			text += ", "
		}
		text += string(s)
	}
	return text
}
