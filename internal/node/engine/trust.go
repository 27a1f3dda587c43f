package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// trust holds the certificates that sandboxes with a network trust besides their image's, and the
// guest image that contains them. The image's file exists while the engine creates anything with it.
type trust struct {
	guest string         // path of the guest image
	added bool           // whether it contains certificates of the operator
	roots *x509.CertPool // the machine's and the operator's; nil for the machine's alone
	users int            // guarded by Engine.mu; environments, builds, and other sandboxes in creation
}

// file names, in the guest's folder, the certificates for a sandbox; "" for none.
func (t *trust) file(bound bool) string {
	switch {
	case bound:
		return wire.BoundCAFile
	case t.added:
		return wire.CAFile
	}
	return ""
}

// makeTrust returns the trust for a PEM bundle. The caller holds e.trusting.
func (e *Engine) makeTrust(ca []byte) (_ *trust, err error) {
	t := &trust{guest: e.host.guest}
	if len(ca) > 0 {
		t.added = true
		if t.roots, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("read this machine's certificates: %w", err)
		}
		t.roots.AppendCertsFromPEM(ca)
		p := e.cfg.Platform
		p.CA = ca
		if t.guest, err = writeGuest(p); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.trusts[t.guest]; known != nil {
		return known, nil
	}
	e.trusts[t.guest] = t
	return t, nil
}

// SetCA changes the certificates that sandboxes with a network trust besides their image's.
// New sandboxes trust them, and so do the host's connections for bound secrets. SetCA replaces ready
// sandboxes with other certificates; running ones keep theirs.
func (e *Engine) SetCA(ca []byte) error {
	stale, err := e.changeTrust(ca)
	if err != nil {
		return err
	}
	for _, env := range stale {
		e.follow(env)
		e.unuse(env)
	}
	return nil
}

// changeTrust changes the trust and returns the environments that must follow, in use.
func (e *Engine) changeTrust(ca []byte) (stale []*environment, err error) {
	e.trusting.Lock()
	defer e.trusting.Unlock()
	t, err := e.makeTrust(ca)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.trust.Swap(t)
	if was == t {
		return nil, nil
	}
	for _, env := range e.envs {
		if e.superseded(env) {
			env.users++
			stale = append(stale, env)
		}
	}
	was.users++
	e.tasks.Go(func() { e.unpin(was) })
	return stale, nil
}

// superseded reports whether an environment makes sandboxes with other certificates than now.
// e.mu is held.
func (e *Engine) superseded(env *environment) bool {
	return env.trust != nil && env.trust != e.trust.Load()
}

// follow has the pool keep sandboxes with the new certificates ready in place of those of a
// superseded environment.
func (e *Engine) follow(env *environment) {
	next, _, err := e.use(env.like)
	if err != nil {
		e.cfg.Log.Warn("sandboxes of an environment are not kept ready with the new certificates; its next executions start cold", "image", env.key.image, "error", err)
		for _, kind := range env.maker.Kinds() {
			e.pool.Drop(kind)
		}
		return
	}
	defer e.unuse(next)
	for _, kind := range env.maker.Kinds() {
		to := kind
		to.Variant = next.key.variant
		e.pool.Replace(kind, to)
	}
}

// kindOf returns the parts of a job that select its environment.
func kindOf(job *execution.Job) *execution.Job {
	return &execution.Job{
		Image: job.Image, Limits: job.Limits, BaseEnv: job.BaseEnv, Permissions: job.Permissions,
		BoundSecrets: make([]execution.BoundSecret, min(len(job.BoundSecrets), 1)), // whether there are any, not their values
	}
}

// pin returns the trust for new sandboxes, whose files stay until it is unpinned.
func (e *Engine) pin() *trust {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.trust.Load()
	t.users++
	return t
}

// unpin releases a trust, and removes its files if nothing needs them anymore.
func (e *Engine) unpin(t *trust) {
	e.mu.Lock()
	t.users--
	unused := e.unused(t)
	e.mu.Unlock()
	if !unused {
		return
	}
	e.trusting.Lock()
	defer e.trusting.Unlock()
	e.mu.Lock()
	unused = e.unused(t) // it may be in use again
	if unused {
		delete(e.trusts, t.guest)
	}
	e.mu.Unlock()
	if !unused {
		return
	}
	if err := errors.Join(e.host.removeGuest(t.guest), e.dropGuests()); err != nil {
		e.cfg.Log.Warn("cannot remove a guest image that no sandbox needs", "path", t.guest, "error", err)
	}
}

// unused reports whether nothing needs a trust's files. e.mu is held.
func (e *Engine) unused(t *trust) bool {
	return t.users == 0 && t != e.trust.Load() && t.guest != e.host.guest && e.trusts[t.guest] == t
}

// dropGuests removes copies of guest images that no named sandbox has, and none will have.
func (e *Engine) dropGuests() error {
	e.mu.Lock()
	keep := []string{e.host.guest}
	for path := range e.trusts {
		keep = append(keep, path)
	}
	e.mu.Unlock()
	return e.host.dropGuests(keep...)
}

// closeTrusts removes the guest images that this process made.
func (e *Engine) closeTrusts() error {
	var errs []error
	for path := range e.trusts {
		if path != e.host.guest {
			errs = append(errs, e.host.removeGuest(path))
		}
	}
	return errors.Join(errs...)
}

// removeGuest removes a guest image. Sandboxes that run have it open.
func (h *host) removeGuest(path string) error {
	var errs []error
	if rt, ok := h.Runtime.(interface{ Forget(image string) error }); ok {
		errs = append(errs, rt.Forget(path))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// trustMark in a named sandbox's folder says that the sandbox has certificates of the operator but
// not the installation's authority. All others have the authority, or neither.
const trustMark = "trusts-more"

// markTrust records which certificates the programs of a named sandbox must use.
func (n Sandboxes) markTrust(id runtime.ID, connected bool, t *trust) error {
	mark := filepath.Join(n.e.host.sandboxDir(id), trustMark)
	if connected && t.added && n.e.networks.cfg.Egress.Authority == nil {
		return os.WriteFile(mark, nil, 0o600)
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// trustFile names the certificates of a named sandbox with a network, which it keeps until it
// restarts; "" for none.
func (n Sandboxes) trustFile(id runtime.ID) string {
	if n.e.networks.cfg.Egress.Authority != nil {
		return wire.BoundCAFile
	}
	if _, err := os.Lstat(filepath.Join(n.e.host.sandboxDir(id), trustMark)); err == nil {
		return wire.CAFile
	}
	return ""
}

// withGuest is a runtime whose sandboxes get one guest image.
type withGuest struct {
	runtime.Runtime
	guest string
}

// Create implements runtime.Runtime.
func (t withGuest) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	spec.Guest = t.guest
	return t.Runtime.Create(ctx, spec)
}

// Restore implements runtime.Runtime.
func (t withGuest) Restore(ctx context.Context, spec runtime.Spec, dir string, share bool) (runtime.Instance, error) {
	spec.Guest = t.guest
	return t.Runtime.Restore(ctx, spec, dir, share)
}

// Prepare implements runtime.Runtime.
func (t withGuest) Prepare(ctx context.Context, spec runtime.Spec) (runtime.Prepared, error) {
	spec.Guest = t.guest
	return t.Runtime.Prepare(ctx, spec)
}
