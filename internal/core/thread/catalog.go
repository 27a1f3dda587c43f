package thread

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Config configures a Catalog.
type Config struct {
	Records Records
	Homes   Homes
	Keep    time.Duration           // how long to keep a thread without its own expiry after its last save; 0 forever
	Deleted func(tenant, id string) // called for each deleted thread; nil for none
	Log     *slog.Logger
}

// Catalog manages the threads of tenants.
type Catalog struct{ cfg Config }

// New returns a Catalog.
func New(cfg Config) *Catalog { return &Catalog{cfg} }

// Owner identifies the tenant of a thread, with its limits.
type Owner struct {
	Tenant  string // id
	Threads int    // 0 for unlimited
	Size    int64  // bytes of a thread's files; 0 for unlimited
}

// Get returns a thread's record.
func (c *Catalog) Get(ctx context.Context, tenant, id string) (*Thread, error) {
	return c.cfg.Records.Thread(ctx, tenant, id)
}

// List returns records, ordered by id.
func (c *Catalog) List(ctx context.Context, f Filter) (page []*Thread, next string, err error) {
	return c.cfg.Records.Threads(ctx, f)
}

// SetExpiry sets when Atoll deletes a thread; nil applies the server's rule.
func (c *Catalog) SetExpiry(ctx context.Context, tenant, id string, at *time.Time) error {
	return c.cfg.Records.SetExpiry(ctx, tenant, id, at)
}

// Delete deletes a thread that is not in use. A later Sweep deletes its blobs once they are old
// enough.
func (c *Catalog) Delete(ctx context.Context, tenant, id string) error {
	if err := c.cfg.Records.DeleteThread(ctx, tenant, id); err != nil {
		return err
	}
	if c.cfg.Deleted != nil {
		c.cfg.Deleted(tenant, id)
	}
	return nil
}

// Exists reports whether a tenant has a thread.
func (c *Catalog) Exists(ctx context.Context, tenant, id string) (bool, error) {
	_, err := c.cfg.Records.Thread(ctx, tenant, id)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return false, nil
	}
	return err == nil, err
}

// Home returns the home directory of a thread in its current state. It stays readable for a while
// after the thread has changed.
func (c *Catalog) Home(ctx context.Context, tenant, id string) (Home, error) {
	t, err := c.cfg.Records.Thread(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return c.cfg.Homes.Load(ctx, tenant, t.State)
}

// Import returns a home with the contents of a tar archive, for an Edit by its owner.
func (c *Catalog) Import(ctx context.Context, o Owner, archive io.Reader) (Home, error) {
	return c.cfg.Homes.Import(ctx, o.Tenant, archive, Quota{Bytes: o.Size})
}

// leaseTime is how long an edit holds its thread after its server last renewed the lease.
const leaseTime = time.Minute

// Edit changes a thread while nothing else uses it, and creates the thread if it does not exist.
// change returns a new home from the current one. If it succeeds, the new home becomes the thread's
// state; otherwise nothing changes.
func (c *Catalog) Edit(ctx context.Context, o Owner, id string, change func(ctx context.Context, h Home) (Home, error)) (err error) {
	token := rand.Text()
	t, err := c.cfg.Records.Lease(ctx, o.Tenant, id, token, leaseTime, o.Threads)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // its caller may be gone
			free, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
			defer cancel()
			err = errors.Join(err, c.cfg.Records.Release(free, o.Tenant, id, token))
		}
	}()
	work, stop := context.WithCancelCause(ctx)
	extended := make(chan struct{})
	go func() {
		defer close(extended)
		c.extend(work, stop, o.Tenant, id, token)
	}()
	defer func() {
		stop(nil)
		<-extended
	}()
	old, err := c.cfg.Homes.Load(work, o.Tenant, t.State)
	if err != nil {
		return err
	}
	made, err := change(work, old)
	if err != nil {
		if cause := context.Cause(work); cause != nil && ctx.Err() == nil {
			return cause // the lease was lost, and the change given up for it
		}
		return err
	}
	return c.cfg.Records.Commit(ctx, o.Tenant, id, token, made.ThreadState())
}

// extend renews a lease until ctx ends, and cancels the edit if the lease is lost.
func (c *Catalog) extend(ctx context.Context, giveUp context.CancelCauseFunc, tenant, id, token string) {
	tick := time.NewTicker(leaseTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.cfg.Records.Extend(ctx, tenant, id, token, leaseTime); err != nil && ctx.Err() == nil {
			giveUp(err)
			return
		}
	}
}

// garbageTime is how long Sweep keeps checking a tenant after it left garbage, because Sweep does
// not delete young data.
const garbageTime = 7 * 24 * time.Hour

// batch is how many threads Expire deletes at a time.
const batch = 1000

// Expire deletes expired threads.
func (c *Catalog) Expire(ctx context.Context) error {
	for {
		n, err := c.cfg.Records.ExpireThreads(ctx, c.cfg.Keep, batch)
		if err != nil || n < batch {
			return err
		}
	}
}

// Sweep deletes data from the blob store that no thread references.
func (c *Catalog) Sweep(ctx context.Context) error {
	tenants, err := c.cfg.Records.TenantsWithGarbage(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, tenant := range tenants {
		errs = append(errs, c.sweep(ctx, tenant))
	}
	return errors.Join(errs...)
}

func (c *Catalog) sweep(ctx context.Context, tenant string) error {
	done, err := c.cfg.Homes.Collect(ctx, tenant, func(ctx context.Context) ([]string, error) { return c.cfg.Records.ReferencedStates(ctx, tenant) })
	if err != nil {
		return err
	}
	if done.Packs > 0 || done.States > 0 {
		c.cfg.Log.InfoContext(ctx, "removed data that no thread needs", "tenant", tenant, "states", done.States, "packs", done.Packs, "bytes", done.Bytes)
	}
	return c.cfg.Records.ClearGarbage(ctx, tenant, garbageTime)
}
