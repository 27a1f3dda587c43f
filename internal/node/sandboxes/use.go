package sandboxes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/node/contexts"
)

// Handle is a sandbox.Handle of this machine.
type Handle struct {
	sb    *sandbox.Sandbox // as it was when the use began
	m     *Manager
	e     *entry
	live  Live
	guest *daemonclient.Client
	grant *sandbox.Grant // nil for Reach
	stops int            // of the entry, when the use began
	once  sync.Once
}

var _ sandbox.Handle = (*Handle)(nil)

// Sandbox implements sandbox.Handle.
func (h *Handle) Sandbox() *sandbox.Sandbox { return h.sb }

// Guest implements sandbox.Handle.
func (h *Handle) Guest() sandbox.Guest { return guest{h.guest, h} }

// Contexts implements sandbox.Handle.
func (h *Handle) Contexts() (codecontext.Contexts, error) {
	covers, err := h.redactor()
	if err != nil {
		return nil, err
	}
	return h.m.cfg.Contexts.Of(&contexts.Use{Guest: h.Guest(), Sandbox: h.sb.ID, Redactor: covers}), nil
}

// Redactor implements sandbox.Handle. Secrets that were changed since the sandbox's
// programs got them are covered, too.
func (h *Handle) Redactor(context.Context) (*redact.Set, error) { return h.redactor() }

func (h *Handle) redactor() (*redact.Set, error) {
	if h.grant == nil {
		return nil, fmt.Errorf("sandbox %s is used without a key, so its secrets are not known", h.sb.ID)
	}
	return h.m.redactors.get(h.m.addSecrets(h.e, h.grant.Secrets), h.m.cfg.Rules, h.grant.RedactionOff)
}

// CountBytes implements sandbox.Handle.
func (h *Handle) CountBytes(bytes int64) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.e.uncharged += bytes
}

// Done implements sandbox.Handle.
func (h *Handle) Done() <-chan struct{} { return h.live.Done() }

// Close implements sandbox.Handle.
func (h *Handle) Close() {
	h.once.Do(func() {
		h.m.mu.Lock()
		defer h.m.mu.Unlock()
		h.e.users--
		h.e.usedAt = time.Now()
	})
}

// Use implements sandbox.Node.
func (m *Manager) Use(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	return handle(m.use(ctx, e, grant))
}

// handle returns no nil of a type as an interface.
func handle(h *Handle, err error) (sandbox.Handle, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Reach implements sandbox.Node.
func (m *Manager) Reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	m.mu.Lock()
	e := m.byID[id]
	if e != nil && e.recovering { // whether a valid key remains is known afterwards
		m.mu.Unlock()
		if err := e.lock(ctx); err != nil {
			return nil, err
		}
		e.unlock()
		m.mu.Lock()
		e = m.byID[id]
	}
	var refusal error
	switch {
	case e == nil:
		refusal = sandbox.Unknown(string(id))
	case e.sb.State != sandbox.Running: // waking it checks keys and policy
	case e.authorization.noValidKey:
		refusal = sandbox.ErrNoValidKey
	default:
		refusal = e.authorization.rootRefusal
	}
	m.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	return handle(m.use(ctx, e, nil))
}

func (m *Manager) use(ctx context.Context, e *entry, grant *sandbox.Grant) (*Handle, error) {
	m.mu.Lock()
	sb := e.sb
	m.mu.Unlock()
	if err := m.checkBudget(ctx, sb.Tenant); err != nil {
		return nil, err
	}
	if err := checkRoot(grant, sb); err != nil {
		return nil, err
	}
	var h *Handle
	if grant == nil || checkMounts(grant, sb) == nil {
		h = m.open(e, grant)
	}
	if h != nil && grant != nil && !e.net.is(allowedNetwork(grant, h.sb, m.creatorSecrets(e, grant))) {
		h.Close()
		h = nil
	}
	if h == nil {
		var err error
		if h, err = m.prepare(ctx, e, grant); err != nil {
			return nil, err
		}
	}
	guest, err := h.live.Guest(ctx)
	// It has just ended, or its file server has. Try to start it again.
	if err != nil && (hasEnded(h.live) || m.checkFileServer(e, h.live)) {
		h.Close()
		if h, err = m.prepare(ctx, e, grant); err != nil {
			return nil, err
		}
		guest, err = h.live.Guest(ctx)
	}
	if err != nil {
		h.Close()
		return nil, m.guestError(h, err)
	}
	h.guest = guest
	return h, nil
}

// open begins a use of a sandbox that runs; nil if it does not.
func (m *Manager) open(e *entry, grant *sandbox.Grant) *Handle {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.removed || e.exclusive || m.closed || e.sb.State != sandbox.Running || e.sb.Stored != nil || e.live == nil || hasEnded(e.live) || m.renewDue(e, time.Now()) {
		return nil
	}
	e.users++
	e.opens++
	e.usedAt, e.cannotSleep = time.Now(), false
	if grant != nil {
		e.usedBy(grant)
	}
	return &Handle{sb: e.sb, m: m, e: e, live: e.live, grant: grant, stops: e.stops}
}

// prepare is use for a sandbox that is being made or changed, sleeps, or is lost,
// or whose network or storage is not as its caller's environment has it now.
func (m *Manager) prepare(ctx context.Context, e *entry, grant *sandbox.Grant) (*Handle, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	if err := m.ensureOpen(ctx, e); err != nil {
		return nil, err
	}
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if live != nil && hasEnded(live) {
		if err := m.handleExit(ctx, e); err != nil {
			return nil, err
		}
		m.mu.Lock()
		sb = e.sb
		m.mu.Unlock()
	}
	if sb.State == sandbox.Lost {
		return nil, m.lostError(e)
	}
	m.mu.Lock()
	renew := m.renewDue(e, time.Now())
	m.mu.Unlock()
	if renew {
		if err := m.renewFileServer(ctx, e, grant); err != nil {
			return nil, err
		}
	}
	if err := m.wakeFor(ctx, e, grant); err != nil {
		return nil, err
	}
	if err := m.clearStored(ctx, e); err != nil {
		return nil, err
	}
	if grant != nil {
		m.mu.Lock()
		live = e.live
		m.mu.Unlock()
		m.refreshCreator(ctx, e, grant)
		if err := m.applyNetwork(grant, e, live); err != nil {
			return nil, err
		}
	}
	h := m.open(e, grant)
	if h == nil {
		return nil, m.lostError(e)
	}
	return h, nil
}

// wakeFor has e's sandbox run, with no more of its tenant's storage than it may have
// now, unless grant's key must not see that; a nil grant is a preview. e is locked.
func (m *Manager) wakeFor(ctx context.Context, e *entry, grant *sandbox.Grant) error {
	if grant != nil {
		if err := m.limitStorage(ctx, e, grant); err != nil {
			return err
		}
	}
	m.mu.Lock()
	asleep := e.sb.State == sandbox.Sleeping
	m.mu.Unlock()
	if !asleep {
		return nil
	}
	if grant == nil {
		var err error
		if grant, err = m.validGrant(ctx, e, &grantCache{grants: m.cfg.Grants}); err != nil {
			return err
		}
		if err := checkRoot(grant, m.current(e)); err != nil {
			return err
		}
		m.mu.Lock()
		e.authorization.valid.Confirm()
		e.authorization.noValidKey = false
		m.mu.Unlock()
		if err := m.withdrawStorage(ctx, e, grant); err != nil {
			return err
		}
	}
	return m.wake(ctx, e, grant)
}

// hasEnded reports whether a sandbox has.
func hasEnded(l Live) bool { return isClosed(l.Done()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lostError says that a sandbox is lost, and what to do.
func (m *Manager) lostError(e *entry) error {
	m.mu.Lock()
	sb := e.sb
	m.mu.Unlock()
	why := sb.Detail
	if why == "" {
		why = "it ended"
	}
	return fault.New(fault.Conflict, "the sandbox %q is lost: %s. Its files and processes are gone; create it anew, or destroy it", sb.Name, why)
}

// guestError is why a guest daemon could not be reached.
func (m *Manager) guestError(h *Handle, err error) error {
	if hasEnded(h.live) {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q has just ended", h.sb.Name))
	}
	return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q does not answer; nothing was run. Retry in a few seconds, or destroy it", h.sb.Name))
}

// checkRoot rejects a sandbox whose programs run as root if its tenant's policy no longer allows
// that. grant is nil for a caller without a key.
func checkRoot(grant *sandbox.Grant, sb *sandbox.Sandbox) error {
	if grant == nil || grant.RootEnabled || !sb.Permissions.Process.Root {
		return nil
	}
	return fault.New(fault.Forbidden, "programs of the sandbox %q run as root, which this tenant's policy no longer allows: delete it and create another one, or ask the operator to allow it (atoll tenant set %s --root)", sb.Name, grant.TenantName)
}
