package idempotency

import "github.com/atoll-run/atoll/internal/core/fault"

// ErrOtherRequest rejects an Idempotency-Key that was used for a different request.
var ErrOtherRequest = fault.New(fault.Conflict, "the Idempotency-Key was used in the last 24 hours for a different request")

// ErrContended is returned if other requests with the key begin and end too quickly to read one.
var ErrContended = fault.New(fault.Unavailable, "requests with this Idempotency-Key come and go; try again")
