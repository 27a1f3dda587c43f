package tenant

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Bounds of tokens.
const (
	DefaultTokenLife = 15 * time.Minute
	MaxTokenLife     = 24 * time.Hour
	MaxTokens        = 10_000 // of a key at a time
	MaxOrigins       = 16     // of a token
	// KeepTokens is how long the record of a token is kept after it has expired: work that it
	// began may still run.
	KeepTokens = 7 * 24 * time.Hour
)

// TokenStore keeps tokens; a Store does. What does not exist is a NotFound fault.
type TokenStore interface {
	// CreateToken records a token that lives for a while by the store's clock, and returns it.
	// It is an Exhausted fault while the token's key has most living ones. Tokens that have
	// expired longer ago than keep are removed.
	CreateToken(ctx context.Context, t Token, life time.Duration, most int, keep time.Duration) (Token, error)
	// Tokens lists the living tokens of a key, the newest first.
	Tokens(ctx context.Context, tenant ID, key, cursor string, limit int) (page []Token, next string, err error)
	// RevokeToken ends a token of a key by the store's clock; again is no error.
	RevokeToken(ctx context.Context, tenant ID, key, id string) (Token, error)
	// Bearer finds the caller who has a token by its hash, narrowed, unless the token is
	// revoked or has expired, or its key would not be found by Principal: NotFound. left is
	// how long the token is still valid.
	Bearer(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	// TokenHolder is Bearer by the token's id. begun finds the caller of work that the token
	// began, also when it has expired since.
	TokenHolder(ctx context.Context, tenant ID, id string, begun bool) (Principal, error)
	// TokenSpent is what was charged in money to a token, and its bound; 0 is none, or a token
	// that is not there any more.
	TokenSpent(ctx context.Context, id string) (used, most usage.Money, err error)
}

// Tokens makes and ends tokens.
type Tokens struct {
	store     TokenStore
	authority *Authority
}

// NewTokens returns Tokens over a store; authority is to forget what ends.
func NewTokens(store TokenStore, authority *Authority) *Tokens { return &Tokens{store, authority} }

// Create makes a token for the caller p, who must have a key. Of t the bounds count. The
// second result is the token itself, which nothing shows again.
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

// List returns the living tokens of the caller's key, the newest first.
func (a *Tokens) List(ctx context.Context, p *Principal, cursor string, limit int) (page []Token, next string, err error) {
	if p.Token != nil {
		return nil, "", errTokenOfToken
	}
	return a.store.Tokens(ctx, p.Tenant.ID, p.Key.ID, cursor, limit)
}

// Revoke ends a token of the caller's key: here at once, in other processes within ten
// seconds. The work that it began ends as that of a revoked key does.
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
