// Package repeats serves requests with an Idempotency-Key once: a request that repeats another gets the
// answer of that one.
package repeats

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Service keeps the answers of all tenants' requests. All fields are required.
type Service struct {
	Store idempotency.Store
	Log   *slog.Logger
}

// A request whose key stands for one that is being served looks again in pauses that grow, and
// is refused in the end.
const (
	firstLook   = 20 * time.Millisecond
	longestLook = time.Second
	waitsFor    = 30 * time.Second
)

// endTime bounds recording how a request ended.
const endTime = 10 * time.Second

// Errors of requests that repeat another.
var (
	// ErrInProgress rejects a request that repeats one which is being served.
	ErrInProgress = fault.New(fault.Conflict, "the request with this Idempotency-Key is being worked on; repeat it in a moment for its answer")

	errTooLong = fault.New(fault.Conflict, "the request with this Idempotency-Key was done, and its answer was too long to be kept: look at what it made")
	errNotKept = fault.New(fault.Conflict, "the request with this Idempotency-Key was done, and its answer was not stored because the request has store: false")
	errUnknown = fault.New(fault.Conflict, "the request with this Idempotency-Key broke off, and how far it came is not known: look at what there is, and use another key to do it again")
)

// ErrStopped says that the server no longer waits for the end of a request.
var ErrStopped = errors.New("stopped waiting for another request")

// CheckKey rejects keys that no request may have.
func CheckKey(key string) error {
	ok := len(key) >= 1 && len(key) <= idempotency.MaxKey
	for i := range len(key) {
		ok = ok && key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return ErrKey
	}
	return nil
}

// ErrKey rejects a key that is malformed or was given more than once.
var ErrKey = fault.New(fault.Invalid, "Idempotency-Key must be given once, with 1 to %d printable ASCII characters", idempotency.MaxKey)

// Request returns what a caller's key stands for: the parts of a request on which its answer depends.
func Request(caller *tenant.Principal, key string, parts ...[]byte) idempotency.Request {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	r := idempotency.Request{Tenant: caller.Tenant.ID, Caller: caller.Key.ID, Key: key}
	sum.Sum(r.Body[:0])
	return r
}

// Begin records a request as begun, unless it repeats another: then Begin waits for the end of that
// request until stop is closed, and returns its answer, or an error if that request kept none.
func (s *Service) Begin(ctx context.Context, r idempotency.Request, stop <-chan struct{}) (answer *idempotency.Answer, repeated bool, err error) {
	earlier, err := s.begin(ctx, r, stop)
	if err != nil || earlier == nil {
		return nil, false, err
	}
	switch {
	case earlier.Body != r.Body:
		err = idempotency.ErrOtherRequest
	case earlier.State == idempotency.Begun:
		err = ErrInProgress
	case earlier.State == idempotency.TooLong:
		err = errTooLong
	case earlier.State == idempotency.NotKept:
		err = errNotKept
	case earlier.State != idempotency.Done:
		err = errUnknown
	}
	return &earlier.Answer, true, err
}

func (s *Service) begin(ctx context.Context, r idempotency.Request, stop <-chan struct{}) (earlier *idempotency.Record, err error) {
	until := time.Now().Add(waitsFor)
	for look := firstLook; ; look = min(2*look, longestLook) {
		if earlier == nil { // no request has the key, or its request gave the key up
			if earlier, err = s.Store.Begin(ctx, r); err != nil || earlier == nil {
				return nil, err
			}
		}
		if earlier.Body != r.Body || earlier.State != idempotency.Begun || time.Now().After(until) {
			return earlier, nil
		}
		select {
		case <-time.After(look):
		case <-stop:
			return nil, ErrStopped
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if earlier, err = s.Store.Get(ctx, r); err != nil {
			return nil, err
		}
	}
}

// Renew says, until the function that it returns is called, that a request is being served.
func (s *Service) Renew(ctx context.Context, r idempotency.Request, traceID string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(idempotency.Lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := s.Store.Renew(ctx, r); err != nil && ctx.Err() == nil {
					s.Log.WarnContext(ctx, "cannot renew a request with an Idempotency-Key", "trace_id", traceID, "error", err)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// Outcome is how a request ended.
type Outcome struct {
	Answer idempotency.Answer
	Broken bool // how far the request came is not known
	Asked  bool // a sandbox was asked to do something, and may have done a part
	Unkept bool // the answer must not be stored
	Long   bool // the answer exceeds idempotency.MaxAnswer
}

// End records how a request ended. A rejected request has done nothing and may be made again, unless a
// sandbox was asked to do something; statuses 429 and 503 say that nothing was begun, whatever was asked.
func (s *Service) End(ctx context.Context, r idempotency.Request, traceID string, o Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.end(ctx, r, o); err != nil {
		s.Log.WarnContext(ctx, "cannot store the answer of a request with an Idempotency-Key", "trace_id", traceID, "error", err)
	}
}

func (s *Service) end(ctx context.Context, r idempotency.Request, o Outcome) error {
	status := o.Answer.Status
	switch {
	case o.Broken:
		return s.Store.End(ctx, r, idempotency.Unknown, idempotency.Answer{})
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, !o.Asked && status >= 400 && status < 500:
		return s.Store.Release(ctx, r)
	case o.Unkept && o.Answer.Refusal == nil:
		return s.Store.End(ctx, r, idempotency.NotKept, idempotency.Answer{})
	case o.Long:
		return s.Store.End(ctx, r, idempotency.TooLong, idempotency.Answer{Objects: o.Answer.Objects})
	}
	return s.Store.End(ctx, r, idempotency.Done, o.Answer)
}

// Forget deletes the stored answers about deleted objects.
func (s *Service) Forget(ctx context.Context, t tenant.ID, gone []string, traceID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := s.Store.Forget(ctx, t, gone); err != nil {
		s.Log.WarnContext(ctx, "cannot delete stored answers about a deleted object", "trace_id", traceID, "error", err)
	}
}
