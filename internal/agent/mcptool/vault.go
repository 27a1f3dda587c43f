package mcptool

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/token"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// storeError is an error of finding a token.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// storeFailed reports whether it could not be found out what a server is asked with.
func storeFailed(err error) bool {
	_, is := errors.AsType[*storeError](err)
	return is
}

// authorized asks a server with the token that the vaults have for it, as it is now. A token
// that the server does not take is refreshed where it can be, and the server asked again: it
// has done nothing then.
func (t *Tools) authorized(ctx context.Context, id tenant.ID, vaults []vault.ID, to mcpclient.Target, ask func(mcpclient.Target) error) error {
	if len(vaults) == 0 || t.cfg.Token == nil || to.Command != nil { // a program is in the sandbox
		return ask(to)
	}
	find := func(rejected string) (string, error) {
		found, err := t.cfg.Token(ctx, id, vaults, to.URL, rejected)
		if err != nil && !errors.Is(err, token.ErrRefresh) && ctx.Err() == nil {
			err = &storeError{err}
		}
		return found, err
	}
	first, err := find("")
	if err != nil {
		return err
	}
	err = ask(to.With(first))
	if first == "" || !errors.Is(err, mcpclient.ErrRejected) || ctx.Err() != nil {
		return err
	}
	second, failed := find(first)
	if failed != nil {
		return failed
	}
	if second == first || second == "" {
		return err
	}
	return ask(to.With(second))
}
