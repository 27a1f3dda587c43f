package model

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// A tenant may give itself so many keys for models in a time, by this process: each leaves
// a policy event, and those are never deleted.
const (
	maxOwnChanges = 200
	ownWindow     = time.Hour
)

// ownChanges counts the keys that tenants gave themselves since a time. The zero value is
// ready.
type ownChanges struct {
	since time.Time
	made  map[tenant.ID]int
}

// take counts one, or refuses it.
func (o *ownChanges) take(id tenant.ID) error {
	if time.Since(o.since) > ownWindow {
		o.since, o.made = time.Now(), map[tenant.ID]int{}
	}
	if o.made[id] >= maxOwnChanges {
		return fault.Limit("model_key_changes", o.since.Add(ownWindow), "this tenant has reached its limit of %d key changes for models within %s", maxOwnChanges, ownWindow)
	}
	o.made[id]++
	return nil
}
