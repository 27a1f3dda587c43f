package tenant

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// NotFound faults of a Store.
var (
	ErrNotFound     = fault.New(fault.NotFound, "tenant not found")
	ErrNoPlan       = fault.New(fault.NotFound, "plan not found")
	ErrNoKey        = fault.New(fault.NotFound, "key not found")
	ErrNoToken      = fault.New(fault.NotFound, "token not found")
	ErrNoTemplate   = fault.New(fault.NotFound, "template not found")
	ErrNoConnection = fault.New(fault.NotFound, "connection not found")
	ErrNoGrant      = fault.New(fault.NotFound, "grant not found")
	// ErrNoBeneficiary rejects a grant to an unknown environment or key.
	ErrNoBeneficiary = fault.New(fault.NotFound, "environment or key not found")
)

// BuiltIn rejects the deletion of a built-in plan.
func BuiltIn(plan string) error {
	return fault.New(fault.Conflict, "plan %q is built in and cannot be removed", plan)
}

// KeysBound rejects the deletion of an environment with n valid keys.
func KeysBound(n int) error {
	return fault.New(fault.Conflict, "living keys are bound to this environment (%d of them); revoke them first", n)
}

// TooManyTokens rejects a token of a key that already has n tokens, the limit. The first of them
// expires at next.
func TooManyTokens(n int, next time.Time) error {
	return fault.Limit("tokens", next, "this key has %d tokens, the most at a time. End some, or wait until they expire.", n)
}
