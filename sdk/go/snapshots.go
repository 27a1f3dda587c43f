package atoll

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// CreateSnapshot saves the current state of a sandbox for the time keep; 0 means the server's default.
func (c *Client) CreateSnapshot(ctx context.Context, ref SandboxRef, keep time.Duration) (Snapshot, error) {
	q := ref.query()
	if keep != 0 {
		q.Set("keep_ms", strconv.FormatInt(keep.Milliseconds(), 10))
	}
	return create[Snapshot](ctx, c, ref.path("snapshots"), q, nil)
}

// Snapshots lists snapshots.
func (c *Client) Snapshots() *Pager[Snapshot] {
	return &Pager[Snapshot]{c: c, path: "/v1/snapshots"}
}

// Snapshot returns a snapshot.
func (c *Client) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	return call[Snapshot](ctx, c, http.MethodGet, under("/v1/snapshots", id), nil, nil)
}

// DeleteSnapshot deletes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under("/v1/snapshots", id), nil)
}
