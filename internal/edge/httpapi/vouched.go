package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	askAgain = 10 * time.Second // how often the key of a request that lasts is looked at
	mostMute = 3                // times that it cannot be before it counts as invalid
)

// errKeyOver ends requests whose key is valid no more.
var errKeyOver = fault.New(fault.Unauthorized, "the API key is not valid any more")

type vouchedKey struct{}

// vouched ends requests that last for longer than their keys.
func (s *Server) vouched(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		over, end := context.WithCancelCause(context.WithoutCancel(ctx))
		defer end(nil)
		first := time.AfterFunc(askAgain, func() {
			if s.outlived(ctx, r) {
				end(errKeyOver)
				cancel(errKeyOver)
			}
		})
		defer first.Stop()
		err := serve(w, r.WithContext(context.WithValue(ctx, vouchedKey{}, over)))
		if err != nil && errors.Is(context.Cause(over), errKeyOver) {
			return errKeyOver
		}
		return err
	}
}

// outlived waits until r's key is valid no more, or the request is over.
func (s *Server) outlived(ctx context.Context, r *http.Request) bool {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for mute := 0; ctx.Err() == nil; {
		caller, err := s.authenticate(r.WithContext(ctx))
		if err == nil && !caller.May(tenant.ScopeSandboxes) && !caller.May(tenant.ScopeAdmin) {
			err = errKeyOver
		}
		switch kind := fault.KindOf(err); {
		case ctx.Err() != nil:
			return false
		case err == nil:
			mute = 0
		case kind == fault.Unauthorized, mute+1 == mostMute:
			return true
		default:
			mute++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return false
}

// whileVouched is a context that ends with ctx, and when the key of the request
// that ctx is of is valid no more, whatever else of it has ended.
func whileVouched(ctx context.Context) (context.Context, func()) {
	over, ok := ctx.Value(vouchedKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(over, func() {
		if errors.Is(context.Cause(over), errKeyOver) {
			cancel(errKeyOver)
		}
	})
	return ctx, func() { unhook(); cancel(nil) }
}
