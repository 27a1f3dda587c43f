package sandboxes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// mountsOf returns the mounts of a new sandbox, without credentials, because the records keep them.
func mountsOf(grant *sandbox.Grant, sub []storage.SubPath) ([]storage.Mount, error) {
	mounts, err := storage.Resolve(grant.Storage, sub)
	for i := range mounts {
		mounts[i].Target = storage.Target{}
	}
	return mounts, err
}

// mountsGranted is what of connections grants let be seen. One whose grants do not fit
// together is not among it.
func mountsGranted(grants []storage.Granted) []storage.Mount {
	of := map[string][]storage.Granted{}
	for _, g := range grants {
		of[g.Connection.ID] = append(of[g.Connection.ID], g)
	}
	var out []storage.Mount
	for _, one := range of {
		if mounts, err := storage.Resolve(one, nil); err == nil {
			out = append(out, mounts...)
		}
	}
	return out
}

// covers reports whether grants let all of mounts be seen.
func covers(grants []storage.Granted, mounts []storage.Mount) bool {
	return len(mounts) == 0 || slices.Equal(storage.Narrow(mounts, mountsGranted(grants)), mounts)
}

// describeMounts says what is mounted, for messages.
func describeMounts(mounts []storage.Mount) string {
	if len(mounts) == 0 {
		return "none mounted"
	}
	return strings.Join(storage.Labels(mounts), ", ")
}

// checkMounts returns why grant's key cannot use a sandbox: each user sees its mounts, which may be
// granted to another key only.
func checkMounts(grant *sandbox.Grant, sb *sandbox.Sandbox) error {
	if covers(grant.Storage, sb.Mounts) {
		return nil
	}
	return fault.New(fault.Forbidden, "the sandbox %q has storage mounted (%s) that this key is not granted as far; use a key that is, or another sandbox", sb.Name, describeMounts(sb.Mounts))
}

// grants returns the storage grants that apply to e's sandbox now: those of the key that created it
// or, if that key is no longer valid, of its environment. known is false before the first check of
// that key. grant is the grant of a caller that uses the sandbox.
func (m *Manager) grants(e *entry, grant *sandbox.Grant) (grants []storage.Granted, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s := &e.authorization; {
	case grant.Key == e.sb.Key:
		return grant.Storage, true
	case s.creator == creatorValid:
		return s.creatorGrants, true
	case s.creator == creatorInvalid:
		return slices.DeleteFunc(slices.Clone(grant.Storage), func(g storage.Granted) bool { return g.Grant.Key != "" }), true
	}
	return nil, false
}

// detailWithdrawn begins the Detail of a sandbox whose mounts are not those it was made
// with.
const detailWithdrawn = "storage that it had mounted was taken back or changed"

// limitStorage withdraws storage that e's sandbox may no longer mount, and returns why grant's key
// cannot use the sandbox. Programs keep open files of a mount, so a withdrawal ends them; the
// sandbox's files stay. e is locked.
func (m *Manager) limitStorage(ctx context.Context, e *entry, grant *sandbox.Grant) error {
	m.mu.Lock()
	none := len(e.sb.Mounts) == 0
	m.mu.Unlock()
	if none {
		return nil
	}
	m.refreshCreator(ctx, e, grant)
	if err := m.withdrawStorage(ctx, e, grant); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return checkMounts(grant, e.sb)
}

// withdrawStorage is limitStorage for a sandbox that grant's key does not use.
func (m *Manager) withdrawStorage(ctx context.Context, e *entry, grant *sandbox.Grant) error {
	grants, known := m.grants(e, grant)
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if !known || covers(grants, sb.Mounts) {
		return nil
	}
	left := storage.Narrow(sb.Mounts, mountsGranted(grants))
	m.cfg.Log.InfoContext(ctx, "storage of a named sandbox was withdrawn", "sandbox_id", string(e.id), "tenant", sb.Tenant)
	work := context.WithoutCancel(ctx)
	if live == nil { // its memory, which knows of the mounts, is of no use from now on
		return m.save(work, e, func(sb *sandbox.Sandbox) error { sb.Mounts, sb.Detail = left, detailWithdrawn; return nil })
	}
	m.mu.Lock()
	e.stops++
	e.stopReason = fault.New(fault.Conflict, "sandbox %q: %s, so its programs were ended; its files are kept", sb.Name, detailWithdrawn)
	m.mu.Unlock()
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	m.charge(ctx, e, time.Now())
	// Recorded first: the next use of a sleeping sandbox ends what still runs.
	if err := m.save(work, e, func(sb *sandbox.Sandbox) error {
		sb.Mounts = left
		return sb.FallAsleep(sandbox.OnDisk, detailWithdrawn+", so its programs were ended")
	}); err != nil {
		return err
	}
	m.mu.Lock()
	e.live, e.checkpointBytes = nil, 0
	m.mu.Unlock()
	e.net.reset()
	if err := live.EndProcesses(work); err != nil {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("storage of the sandbox %q was taken back, and its programs could not be ended; retry in a few seconds, or destroy it", sb.Name))
	}
	return nil
}
