// Package token provides the vault tokens that Atoll sends to MCP servers. It refreshes tokens
// by OAuth 2.1 shortly before they expire; a lease keeps two servers from refreshing the same one.
//
// Callers choose the token endpoints. The HTTP client applies the rules of package outbound to
// their addresses and follows no redirects. Errors contain no token.
package token

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Times of a refresh.
const (
	early       = time.Minute // how long before it expires a token is refreshed
	answerTime  = 20 * time.Second
	leaseTime   = 2 * answerTime // limits one refresh, including storing the answer
	waitTime    = 30 * time.Second
	lookAgain   = 200 * time.Millisecond
	maxLifetime = 10 * 365 * 24 * time.Hour
)

// ErrRefresh is in the error chain if Atoll could not refresh a token.
var ErrRefresh = errors.New("the token was not refreshed")

// Source finds and refreshes tokens.
type Source struct {
	Store vault.Store
	// Client sends refresh requests. It must connect only to allowed addresses and follow no
	// redirects. Check rejects an endpoint that Atoll may not call.
	Client *http.Client
	Check  func(ctx context.Context, field, url string) error
}

// Token returns the token for an MCP server from the first vault that has one; "" if none has.
// rejected is a token that the server rejected: if the vault still has it, Token refreshes it.
func (s *Source) Token(ctx context.Context, t tenant.ID, vaults []vault.ID, server, rejected string) (string, error) {
	h, err := s.Store.ForServer(ctx, t, vaults, server)
	if h == nil || err != nil {
		return "", err
	}
	if stale(h, rejected) {
		return s.refresh(ctx, h, func() (*vault.Held, error) { return s.Store.ForServer(ctx, t, vaults, server) })
	}
	return h.Secret.Value, nil
}

func stale(h *vault.Held, rejected string) bool {
	if h.Auth.Refresh == nil {
		return false
	}
	return h.Secret.Value == rejected || !h.Auth.ExpiresAt.IsZero() && time.Until(h.Auth.ExpiresAt) < early
}

// refresh refreshes a token, or waits while another server does.
func (s *Source) refresh(ctx context.Context, h *vault.Held, again func() (*vault.Held, error)) (string, error) {
	was, of := h.Version, h.ID
	for until := time.Now().Add(waitTime); time.Now().Before(until); {
		got, err := s.Store.Lease(ctx, &h.Credential, leaseTime)
		if err != nil {
			return "", err
		}
		if got {
			return s.renew(ctx, h)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if h, err = again(); err != nil {
			return "", err
		}
		if h == nil {
			return "", nil // it is archived
		}
		if h.Version != was || h.ID != of { // it was refreshed, or is another one, which may have no Refresh
			return h.Secret.Value, nil
		}
	}
	return "", refused("another server refreshes it, and has not for %s", waitTime)
}

// renew fetches a new token and stores it, even if ctx ends: the endpoint may already have
// invalidated the old refresh token.
func (s *Source) renew(ctx context.Context, h *vault.Held) (string, error) {
	ctx = context.WithoutCancel(ctx)
	made, err := s.exchange(ctx, h)
	var value string
	if err == nil {
		value, err = s.keep(ctx, h, made)
	}
	if errors.Is(err, ErrRefresh) {
		_, failed := s.Store.Lease(ctx, &h.Credential, 0)
		return "", errors.Join(err, failed)
	}
	return value, err
}

// keep stores an endpoint's answer and returns the current token.
func (s *Source) keep(ctx context.Context, h *vault.Held, made *oauth2.Token) (value string, err error) {
	_, err = s.Store.Change(ctx, h.Tenant, h.Vault, h.ID, func(c *vault.Credential, secret *vault.Secret) error {
		if c.Version == h.Version { // else it was given another one meanwhile
			secret.Value, c.Auth.ExpiresAt = made.AccessToken, made.Expiry.UTC().Truncate(time.Microsecond)
			if made.Expiry.IsZero() {
				c.Auth.ExpiresAt = time.Time{}
			}
			if made.RefreshToken != "" {
				secret.RefreshToken = made.RefreshToken
			}
			if err := c.Check(secret, false); err != nil {
				return refused("%s answers with what is no token", host(h))
			}
		}
		value = secret.Value
		return nil
	})
	if k := fault.KindOf(err); k == fault.NotFound || k == fault.Conflict { // deleted or archived meanwhile
		return "", nil
	}
	return value, err
}

// code matches an OAuth error code.
var code = regexp.MustCompile(`^[a-z_]{1,40}$`)

// exchange requests a new token from the endpoint.
func (s *Source) exchange(ctx context.Context, h *vault.Held) (*oauth2.Token, error) {
	r := h.Auth.Refresh
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, s.Client), answerTime)
	defer cancel()
	if err := s.Check(ctx, "token_endpoint", r.Endpoint); err != nil {
		return nil, refused("%s", err)
	}
	q := clientcredentials.Config{
		ClientID: r.ClientID, ClientSecret: h.Secret.ClientSecret, TokenURL: r.Endpoint, AuthStyle: oauth2.AuthStyleInParams, Scopes: strings.Fields(r.Scope),
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {h.Secret.RefreshToken}},
	}
	if r.EndpointAuth == vault.AuthBasic {
		q.AuthStyle = oauth2.AuthStyleInHeader
	}
	if r.Resource != "" {
		q.EndpointParams.Set("resource", r.Resource)
	}
	made, err := q.Token(ctx)
	var no *oauth2.RetrieveError
	switch {
	case errors.As(err, &no) && code.MatchString(no.ErrorCode):
		return nil, refused("%s answers %d: %s", host(h), no.Response.StatusCode, no.ErrorCode)
	case errors.As(err, &no):
		return nil, refused("%s answers %d", host(h), no.Response.StatusCode)
	case err != nil:
		if why, ok := outbound.Untrusted(err, outbound.System); ok {
			return nil, refused("%s cannot be reached: %s", host(h), why)
		}
		return nil, refused("%s cannot be reached, or does not answer as OAuth has it", host(h))
	case !strings.EqualFold(made.Type(), "bearer"):
		return nil, refused("%s answers with a token of another type than bearer", host(h))
	case time.Until(made.Expiry) > maxLifetime:
		made.Expiry = time.Time{}
	}
	return made, nil
}

func host(h *vault.Held) string {
	u, err := url.Parse(h.Auth.Refresh.Endpoint)
	if err != nil {
		return "its token endpoint"
	}
	return u.Host
}

func refused(format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, ErrRefresh, "the token of the vault has expired and could not be refreshed: "+fmt.Sprintf(format, args...))
}
