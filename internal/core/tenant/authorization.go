package tenant

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// MaxStale is how long an authorization is still trusted after it was last confirmed,
// while keys cannot be checked.
const MaxStale = 30 * time.Second

// ErrKeyInvalid is why a use ends whose key was revoked, has expired or lost its scope.
var ErrKeyInvalid = fault.New(fault.Unauthorized, "the API key is no longer valid")

// Authorization says whether a use that lasts may go on, such as a request that streams
// or a running sandbox. It holds while its check succeeds, and for MaxStale while the
// check can neither confirm nor refuse it. It is safe for concurrent use.
type Authorization struct {
	check func(context.Context) error

	mu        sync.Mutex
	confirmed time.Time // guarded by mu; when it was last known to hold
}

// NewAuthorization returns an authorization that holds at this moment. check asks again:
// nil confirms it, an Unauthorized or Forbidden fault refuses it, and every other error
// leaves it open.
func NewAuthorization(check func(context.Context) error) *Authorization {
	return &Authorization{check: check, confirmed: time.Now()}
}

// Confirm notes that it holds at this moment, because a valid key was just used.
func (a *Authorization) Confirm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.confirmed = time.Now()
}

// Check asks now. It returns nil while the authorization holds, or is trusted because it
// cannot be checked; otherwise ErrKeyInvalid. A confirmation that comes while the
// question is under way counts more than the answer.
func (a *Authorization) Check(ctx context.Context) error {
	began := time.Now()
	return a.Settle(began, a.check(ctx))
}

// Settle is Check with an answer that the caller has got to a question asked at began. For
// an authorization that is only settled NewAuthorization needs no check.
func (a *Authorization) Settle(began time.Time, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch kind := fault.KindOf(err); {
	case err == nil:
		a.confirmed = time.Now()
		return nil
	case a.confirmed.After(began):
		return nil
	case kind == fault.Unauthorized, kind == fault.Forbidden, time.Since(a.confirmed) >= MaxStale:
		return ErrKeyInvalid
	}
	return nil
}

// Watch returns a context that is canceled with the cause ErrKeyInvalid when the
// authorization ends; it is checked every AuthTTL. stop ends the watch and waits for a
// check that is under way.
func (a *Authorization) Watch(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	first := time.AfterFunc(AuthTTL, func() { // most requests are over before
		defer close(ended)
		tick := time.NewTicker(AuthTTL)
		defer tick.Stop()
		for {
			if err := a.Check(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return ctx, sync.OnceFunc(func() {
		cancel(nil)
		if !first.Stop() {
			<-ended
		}
	})
}
