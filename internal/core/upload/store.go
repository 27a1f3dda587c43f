package upload

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store keeps the records of files and encrypts names and media types. It returns a NotFound fault
// for files of another tenant, expired files and incomplete uploads.
type Store interface {
	// Begin records a file whose upload is in progress. Its Size is the size known so far.
	Begin(ctx context.Context, f *File, most Limits) error
	// Finish makes f available with its Size and ExpiresAt, and sets CreatedAt. Finish and Delete
	// append events in the same transaction. Finish returns a NotFound fault if Begin was too long
	// ago.
	Finish(ctx context.Context, f *File, most Limits, life time.Duration, events ...tenant.PolicyEvent) error
	// Get returns a tenant's file.
	Get(ctx context.Context, t tenant.ID, id ID) (*File, error)
	// List returns a page of files, newest first, and the cursor of the next page; "" at the end.
	List(ctx context.Context, t tenant.ID, p Page) (page []File, next string, err error)
	// Find returns the existing files among ids, newest first.
	Find(ctx context.Context, t tenant.ID, ids []ID) ([]File, error)
	// Delete makes a file unavailable. Its record remains until Forget.
	Delete(ctx context.Context, t tenant.ID, id ID, events ...tenant.PolicyEvent) error
	// Drop deletes an upload that Begin recorded, even if Finish failed with an unknown outcome.
	Drop(ctx context.Context, id ID) error
	// Gone returns up to most files that were deleted, have expired, or were begun longer than
	// stale ago without Finish. It marks the stale ones as deleted.
	Gone(ctx context.Context, stale time.Duration, most int) ([]File, error)
	// Forget deletes the record of a deleted file.
	Forget(ctx context.Context, id ID) error
}

// Page selects a page of a list.
type Page struct {
	Cursor string // next of the previous page; "" for the first page
	Limit  int
}
