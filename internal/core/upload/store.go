package upload

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps the records of files. Names and media types are encrypted. What another tenant
// has is not found, and neither is what has expired, or is not there as a whole yet.
type Store interface {
	// Begin records a file whose bytes are on their way; its Size is what is known of them.
	Begin(ctx context.Context, f *File, most Limits) error
	// Finish has f be there, of its Size and with its ExpiresAt, and sets CreatedAt. It appends
	// events in the same transaction, as does Delete. A file whose Begin was too long ago is
	// not found.
	Finish(ctx context.Context, f *File, most Limits, life time.Duration, events ...tenant.PolicyEvent) error
	// Get returns a file of a tenant.
	Get(ctx context.Context, t tenant.ID, id ID) (*File, error)
	// List returns a page of files, newest first, and where the next one begins; "" at the end.
	List(ctx context.Context, t tenant.ID, p Page) (page []File, next string, err error)
	// Find returns those files of ids that there are, newest first.
	Find(ctx context.Context, t tenant.ID, ids []ID) ([]File, error)
	// Delete has a file be there no more. Its record stays until Forget.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// Drop deletes what Begin has recorded, also where Finish failed and it is not known how.
	Drop(ctx context.Context, id ID) error
	// Gone returns up to most files that are deleted, have expired, or were begun longer than
	// stale ago and not finished, which are deleted by that.
	Gone(ctx context.Context, stale time.Duration, most int) ([]File, error)
	// Forget removes the record of a file that is deleted.
	Forget(ctx context.Context, id ID) error
}

// Page is a part of a list.
type Page struct {
	Cursor string // what the page before gave as next; "" for the first one
	Limit  int
}
