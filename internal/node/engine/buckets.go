package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
)

// Buckets says how buckets are mounted.
type Buckets struct {
	bucket.Buckets
	Owners idmap.Map // the host's ids of a sandbox's users
	Cache  int64     // bytes of disk for what is being written, of all mounts together
}

// Fragile implements executor.Sandboxes: this process is the other end of buckets.
func (e *Engine) Fragile(job *execution.Job) bool {
	return slices.ContainsFunc(job.Mounts, func(m storage.Mount) bool { return e.cfg.Buckets.Has(m.Kind) })
}

// mountBucket mounts a bucket for the sandbox id. This process answers for it: it
// ends with it.
func (e *Engine) mountBucket(ctx context.Context, id runtime.ID, tenant string, m *storage.Mount, on string) (err error) {
	c := &e.cfg.Buckets
	uid, _ := c.Owners.UID.ToHost(runtime.UID)
	gid, _ := c.Owners.GID.ToHost(runtime.GID)
	o, err := c.Open(ctx, tenant, m)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the connection %q cannot be opened; check its credentials", m.Slug))
	}
	mounted, err := bucket.Mounted(bucket.Config{
		Objects: o, On: on, ReadOnly: m.ReadOnly, UID: uid, GID: gid, Cache: e.host.disk, Room: e.room, Log: e.cfg.Log,
	})
	if err != nil {
		return errors.Join(err, o.Close())
	}
	e.host.mu.Lock()
	defer e.host.mu.Unlock()
	if e.host.buckets == nil {
		e.host.buckets = map[runtime.ID][]*bucket.Mount{}
	}
	e.host.buckets[id] = append(e.host.buckets[id], mounted)
	return nil
}

// abandon gives up what a sandbox's buckets have not stored.
func (h *host) abandon(id runtime.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.buckets[id] {
		m.Abandon()
	}
}

// drop closes a sandbox's buckets.
func (h *host) drop(id runtime.ID) error {
	h.mu.Lock()
	open := h.buckets[id]
	delete(h.buckets, id)
	h.mu.Unlock()
	var errs []error
	for _, m := range open {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Flush implements executor.Flusher.
func (c claimed) Flush(ctx context.Context) error {
	c.host.mu.Lock()
	open := c.host.buckets[c.ID()]
	c.host.mu.Unlock()
	var errs []error
	for _, m := range open {
		errs = append(errs, m.Flush(ctx))
	}
	return errors.Join(errs...)
}

// errBucket is why a run does not outlive the process that it was begun by.
var errBucket = fault.New(fault.Unavailable, "it had a bucket mounted, which ended with the server")
