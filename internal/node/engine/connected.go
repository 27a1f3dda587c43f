package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// admitMounts refuses what a named sandbox cannot have mounted.
func (e *Engine) admitMounts(mounts []storage.Mount) error {
	for i := range mounts {
		switch m := &mounts[i]; {
		case !e.cfg.Buckets.Has(m.Kind) && e.cfg.Volumes != nil:
		case e.cfg.Buckets.Has(m.Kind) && m.Kind == storage.Volume:
			return fault.New(fault.Forbidden, "the volume %q is in a bucket of the operator's, which only executions can mount, not sandboxes that outlive them: use a key whose environment has no grant for it, or ask the operator to keep volumes in a folder", m.Slug)
		case e.cfg.Buckets.Has(m.Kind):
			return fault.New(fault.Forbidden, "the connection %q leads to a bucket, which only executions can mount, not sandboxes that outlive them: use a key whose environment has no grant for it", m.Slug)
		default:
			return errNoMounts
		}
	}
	return nil
}

// withMounts has a sandbox made with all that it mounts. What is its tenant's is mounted
// on the host only meanwhile, for it to be found: from then on the sandbox keeps it,
// and nothing that removes a sandbox's folders can come upon it.
func (n Sandboxes) withMounts(ctx context.Context, r sandboxes.Recipe, do func([]runtime.Mount) error) error {
	h := n.e.host
	if err := n.e.admitMounts(r.Mounts); err != nil {
		return err
	}
	mounts, err := h.makeFolders(r.ID, r.Disk)
	if err != nil {
		return fmt.Errorf("make the folders of %s: %w", r.ID, err)
	}
	if len(r.Mounts) == 0 {
		return do(mounts)
	}
	if err := h.unmount(r.ID); err != nil { // what was left of an earlier try
		return err
	}
	shared, err := n.e.mount(ctx, r.ID, r.Tenant, r.Mounts)
	if err != nil {
		return err
	}
	return errors.Join(do(append(mounts, shared...)), h.unmount(r.ID))
}
