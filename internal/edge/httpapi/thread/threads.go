package thread

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

var exampleTime = new(time.Date(2031, 6, 30, 0, 0, 0, 0, time.UTC))

// idOf returns the id in a request's path. One that no thread can have is answered as one
// that none has.
func idOf(c *httpapi.Call) (string, error) {
	id := c.Path("thread_id")
	return id, checkID(id)
}

func checkID(id string) error {
	if id == "" || execution.CheckThread(id) != nil {
		return thread.ErrNotFound
	}
	return nil
}

// ownerOf is what a caller may have.
func ownerOf(p *tenant.Principal) thread.Owner {
	return thread.Owner{Tenant: p.Tenant.ID, Threads: p.Plan.MaxThreads, Size: p.Plan.MaxThreadSize}
}

func (h *Handlers) list(c *httpapi.Call) (out ThreadPage, err error) {
	f := thread.Filter{Tenant: c.Caller.Tenant.ID, Prefix: c.Text("prefix"), Limit: int(c.Int("limit"))}
	if err := execution.CheckThread(f.Prefix); err != nil {
		return out, httpapi.Invalid("prefix must be the beginning of a thread_id: letters, digits, hyphens and underscores")
	}
	if f.Cursor, err = c.Cursor(); err != nil {
		return out, err
	}
	page, next, err := h.Threads.List(c.Context(), f)
	if err != nil {
		return out, err
	}
	return ThreadPage{Data: httpapi.Each(page, threadOf), NextPage: httpapi.OrNull(next)}, nil
}

func (h *Handlers) get(c *httpapi.Call) (Thread, error) {
	id, err := idOf(c)
	if err != nil {
		return Thread{}, err
	}
	return h.record(c.Context(), c.Caller.Tenant.ID, id)
}

func (h *Handlers) record(ctx context.Context, tenantID tenant.ID, id string) (Thread, error) {
	t, err := h.Threads.Get(ctx, tenantID, id)
	if err != nil {
		return Thread{}, err
	}
	return threadOf(t), nil
}

func (h *Handlers) change(c *httpapi.Call, in *ThreadChange) (Thread, error) {
	id, err := idOf(c)
	if err != nil {
		return Thread{}, err
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(time.Now()) {
		return Thread{}, httpapi.Invalid("expires_at must be in the future; DELETE deletes a thread at once")
	}
	if err := h.Threads.SetExpiry(c.Context(), c.Caller.Tenant.ID, id, in.ExpiresAt); err != nil {
		return Thread{}, err
	}
	return h.record(c.Context(), c.Caller.Tenant.ID, id)
}

func (h *Handlers) delete(c *httpapi.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	return h.Threads.Delete(c.Context(), c.Caller.Tenant.ID, id)
}
