// Package idempotency keeps what requests with an Idempotency-Key were answered, so that one
// that is repeated is not done twice.
package idempotency

import (
	"context"
	"time"
)

const (
	// Keep is how long a key stands for its request.
	Keep = 24 * time.Hour
	// Lease is how long a server that works on a request is taken to be alive without a word
	// from it.
	Lease = time.Minute
	// MaxAnswer is the size in bytes of the longest answer that is kept.
	MaxAnswer = 64 << 10
	// MaxKey is the number of characters of the longest key.
	MaxKey = 255
)

// Request is a request with a key.
type Request struct {
	Tenant string
	Caller string // the API key or token that it came with: another one's keys are others
	Key    string
	Body   [32]byte // digest of all that the key stands for
}

// State is how far a request is.
type State string

// States of requests.
const (
	Begun   State = "begun"   // a server works on it
	Done    State = "done"    // its answer is kept
	TooLong State = "toolong" // it was answered, by more than MaxAnswer
	Unknown State = "unknown" // what was done is not known
	NotKept State = "notkept" // it was answered, by what the caller did not want stored
)

// Record is what is known of a request. A Begun one whose server has not renewed its lease is
// Unknown.
type Record struct {
	Body   [32]byte // that of the request which was asked for, if it is the same
	State  State
	Answer Answer // of Done
}

// Answer is what a request was answered.
type Answer struct {
	Status  int
	Header  map[string]string
	Body    []byte
	Refusal *Refusal // in place of a body, which each interface writes as it does
	// Objects are ids and names of what the answer is about. With one of them the answer goes.
	Objects []string `json:"-"`
}

// Refusal is an answer that says why a request was not served.
type Refusal struct{ Code, Message string }

// Store keeps requests. Times are by its clock.
type Store interface {
	// Begin records a request as begun, unless its key stands for one already, which is then
	// returned.
	Begin(ctx context.Context, r Request) (earlier *Record, err error)
	// Get returns what is known of a request, nil if its key stands for none.
	Get(ctx context.Context, r Request) (*Record, error)
	// Renew says that the request is still worked on.
	Renew(ctx context.Context, r Request) error
	// End records how a request that has begun ended.
	End(ctx context.Context, r Request, s State, a Answer) error
	// Release forgets a request that has begun and did nothing: its key may be used again.
	Release(ctx context.Context, r Request) error
	// Forget deletes the answers about objects of a tenant that were deleted. Their keys stand for
	// nothing any more.
	Forget(ctx context.Context, tenant string, objects []string) error
	// Purge deletes keys that stand for nothing any more, at most most of them, and returns how
	// many went.
	Purge(ctx context.Context, most int) (int, error)
}
