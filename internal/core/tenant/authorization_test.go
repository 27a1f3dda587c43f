package tenant_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

var errAway = errors.New("the database is away")

func TestAuthorizationIsTrustedForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		holds time.Duration // after it was last confirmed; negative for always
	}{
		"confirmed": {nil, -1},
		"refused":   {fault.New(fault.Unauthorized, "revoked"), 0},
		"forbidden": {fault.New(fault.Forbidden, "lost its scope"), 0},
		"away":      {errAway, tenant.MaxStale},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := tenant.NewAuthorization(func(context.Context) error { return c.err })
				for past := time.Duration(0); past < 2*tenant.MaxStale; past += time.Second {
					err := a.Check(t.Context())
					if holds := c.holds < 0 || past < c.holds; holds != (err == nil) || err != nil && !errors.Is(err, tenant.ErrKeyInvalid) {
						t.Fatalf("after %s: %v", past, err)
					}
					time.Sleep(time.Second)
				}
				if a.Confirm(); c.holds == tenant.MaxStale && a.Check(t.Context()) != nil {
					t.Error("a use with a valid key did not confirm it")
				}
			})
		})
	}
}

// TestAuthorizationConfirmedMeanwhile: an answer that was read before a key was used says
// nothing about that use.
func TestAuthorizationConfirmedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *tenant.Authorization
		a = tenant.NewAuthorization(func(context.Context) error {
			time.Sleep(time.Second)
			a.Confirm()
			return fault.New(fault.Unauthorized, "read before")
		})
		if err := a.Check(t.Context()); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestAuthorizationWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[error]
		var asked atomic.Int64
		a := tenant.NewAuthorization(func(context.Context) error {
			asked.Add(1)
			if err := answer.Load(); err != nil {
				return *err
			}
			return nil
		})
		began := time.Now()
		ctx, stop := a.Watch(t.Context())
		defer stop()
		time.Sleep(5*tenant.AuthTTL + time.Second)
		if n := asked.Load(); ctx.Err() != nil || n != 5 {
			t.Fatalf("asked %d times: %v", n, context.Cause(ctx))
		}
		refused := error(fault.New(fault.Unauthorized, "revoked"))
		answer.Store(&refused)
		<-ctx.Done()
		if past := time.Since(began); past != 6*tenant.AuthTTL || !errors.Is(context.Cause(ctx), tenant.ErrKeyInvalid) {
			t.Errorf("after %s: %v", past, context.Cause(ctx))
		}

		// A store that is away does not end a use before MaxStale.
		answer.Store(&errAway)
		a.Confirm()
		began = time.Now()
		ctx, stop = a.Watch(t.Context())
		defer stop()
		<-ctx.Done()
		if past := time.Since(began); past != tenant.MaxStale || !errors.Is(context.Cause(ctx), tenant.ErrKeyInvalid) {
			t.Errorf("after %s: %v", past, context.Cause(ctx))
		}
	})
}

func TestAuthorizationStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := false
		a := tenant.NewAuthorization(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			over = true
			return ctx.Err()
		})
		ctx, stop := a.Watch(t.Context())
		time.Sleep(tenant.AuthTTL + time.Second)
		stop()
		if !over {
			t.Error("stop did not wait for the check in progress")
		}
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) || errors.Is(cause, tenant.ErrKeyInvalid) {
			t.Errorf("the cause is %v", cause)
		}
	})
}
