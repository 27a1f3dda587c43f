package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

type authorizationKey struct{}

// watched ends a request when its key stops being valid.
func (s *Server) watched(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		a := tenant.NewAuthorization(func(ctx context.Context) error {
			caller, err := s.authenticate(r.WithContext(ctx))
			if err == nil && !caller.May(tenant.ScopeSandboxes) && !caller.May(tenant.ScopeAdmin) {
				return fault.New(fault.Forbidden, "the key lost its scope")
			}
			return err
		})
		ctx, stop := a.Watch(context.WithValue(r.Context(), authorizationKey{}, a))
		defer stop()
		err := serve(w, r.WithContext(ctx))
		if err != nil && errors.Is(context.Cause(ctx), tenant.ErrKeyInvalid) {
			return tenant.ErrKeyInvalid
		}
		return err
	}
}

// whileAuthorized returns ctx until the key of its request stops being valid, also where
// ctx outlives the request.
func whileAuthorized(ctx context.Context) (context.Context, func()) {
	if a, ok := ctx.Value(authorizationKey{}).(*tenant.Authorization); ok {
		return a.Watch(ctx)
	}
	return ctx, func() {}
}
