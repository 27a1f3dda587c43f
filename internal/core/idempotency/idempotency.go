// Package idempotency stores the answers to requests with an Idempotency-Key, so that Atoll does
// not repeat the work for a retried request.
package idempotency

import (
	"context"
	"time"
)

const (
	// Keep is how long a key is reserved for its request.
	Keep = 24 * time.Hour
	// Lease is how long a server that works on a request counts as alive without renewing.
	Lease = time.Minute
	// MaxAnswer is the largest stored answer, in bytes.
	MaxAnswer = 64 << 10
	// MaxKey is the length of the longest key, in characters.
	MaxKey = 255
)

// Request is a request with a key.
type Request struct {
	Tenant string
	Caller string // the API key or token of the request; keys of different callers are independent
	Key    string
	Body   [32]byte // digest of everything that the key identifies
}

// State is the progress of a request.
type State string

// States of requests.
const (
	Begun   State = "begun"   // a server is working on it
	Done    State = "done"    // its answer is stored
	TooLong State = "toolong" // its answer exceeded MaxAnswer
	Unknown State = "unknown" // the outcome is not known
	NotKept State = "notkept" // the caller asked not to store the answer
)

// Record is the stored state of a request. A Begun record whose server has not renewed its lease
// reads as Unknown.
type Record struct {
	Body   [32]byte // digest of the recorded request, to detect a reused key
	State  State
	Answer Answer // for Done
}

// Answer is the response to a request.
type Answer struct {
	Status  int
	Header  map[string]string
	Body    []byte
	Refusal *Refusal // instead of Body; each interface encodes it in its own format
	// Objects are the ids and names that the answer mentions. Deleting any of them deletes the
	// answer.
	Objects []string `json:"-"`
}

// Refusal says why a request was rejected.
type Refusal struct{ Code, Message string }

// Store keeps requests. It uses its own clock.
type Store interface {
	// Begin records a request as begun. If its key is already in use, Begin returns the earlier
	// record instead.
	Begin(ctx context.Context, r Request) (earlier *Record, err error)
	// Get returns the record of a request, or nil if its key is unused.
	Get(ctx context.Context, r Request) (*Record, error)
	// Renew extends the lease of a request in progress.
	Renew(ctx context.Context, r Request) error
	// End records the outcome of a begun request.
	End(ctx context.Context, r Request, s State, a Answer) error
	// Release deletes a begun request that had no effect, so that its key may be used again.
	Release(ctx context.Context, r Request) error
	// Forget deletes the answers that mention deleted objects of a tenant. Their keys become free.
	Forget(ctx context.Context, tenant string, objects []string) error
	// Purge deletes up to most expired keys and returns how many.
	Purge(ctx context.Context, most int) (int, error)
}
