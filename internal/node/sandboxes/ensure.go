package sandboxes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// makeTime bounds making a sandbox.
const makeTime = 2 * time.Minute

// Ensure implements sandbox.Node. A nil spec accepts any sandbox. With a spec, a sandbox of another
// image is a Conflict, and a new sandbox replaces a lost one.
func (m *Manager) Ensure(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (_ *sandbox.Sandbox, created bool, err error) {
	if err := grant.Check(); err != nil {
		return nil, false, err
	}
	if err := errors.Join(sandbox.CheckSession(session), sandbox.CheckName(name)); err != nil {
		return nil, false, err
	}
	for {
		e, err := m.find(grant, session, name)
		if fault.KindOf(err) == fault.NotFound {
			sb, made, err := m.create(ctx, grant, session, name, spec)
			if err != nil || made {
				return sb, made, err
			}
			continue // another call was faster
		}
		if err != nil {
			return nil, false, err
		}
		if sb, over, err := m.existing(ctx, grant, e, spec); err != nil || !over {
			return sb, false, err
		}
	}
}

// existing is Ensure for a sandbox that there is, unless it turns out to be over.
func (m *Manager) existing(ctx context.Context, grant *sandbox.Grant, e *entry, spec *sandbox.Spec) (sb *sandbox.Sandbox, over bool, err error) {
	if err := e.lock(ctx); err != nil { // it may just be made
		return nil, false, err
	}
	defer e.unlock()
	m.mu.Lock()
	sb, gone := m.publicCopy(e), e.removed
	m.mu.Unlock()
	switch {
	case gone:
		return nil, true, nil
	case spec == nil:
		return sb, false, nil
	case sb.State == sandbox.Lost:
		return nil, true, m.end(ctx, e, sb.Detail)
	case spec.Snapshot != "":
		return nil, false, fault.New(fault.Conflict, "the sandbox %q exists; a snapshot is what a new one begins with: destroy it first, or choose another name", sb.Name)
	}
	if err := checkSize(sb, spec.Size); err != nil {
		return nil, false, err
	}
	if spec.SubPaths != nil {
		mounts, err := mountsOf(grant, spec.SubPaths)
		if err != nil {
			return nil, false, err
		}
		if !slices.Equal(mounts, sb.Mounts) {
			return nil, false, fault.New(fault.Conflict, "the sandbox %q exists and does not see that of its storage (it has %s); leave sub_paths out to use it as it is, destroy it first, or choose another name",
				sb.Name, describeMounts(sb.Mounts))
		}
	}
	if spec.Image != "" && !spec.ImageAssumed && spec.Image != sb.ImageAlias {
		image, err := m.cfg.Images.Resolve(spec.Image)
		if err != nil {
			return nil, false, err
		}
		if image != sb.Image && !(strings.HasPrefix(sb.Image, requirement.ImagePrefix) && m.isEnvironments(grant, spec.Image)) {
			asked := sb.ImageAlias
			if asked == "" {
				asked = sb.Image
			}
			return nil, false, fault.New(fault.Conflict,
				"the sandbox %q exists with the image %q; use it as it is, destroy it first, or choose another name for one with %q", sb.Name, asked, spec.Image)
		}
		sb.ImageWarning = m.cfg.Images.Warning(spec.Image, sb.Image)
	}
	return sb, false, nil
}

// create makes a sandbox; made is false if another call has just begun to.
func (m *Manager) create(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (_ *sandbox.Sandbox, made bool, err error) {
	if spec == nil {
		spec = &sandbox.Spec{}
	}
	from, err := m.findSnapshot(ctx, grant, spec)
	if err != nil {
		return nil, false, err
	}
	sb, err := m.draft(ctx, grant, session, name, spec)
	if err != nil {
		return nil, false, err
	}
	if from != nil {
		if err := m.applySnapshot(grant, sb, from, spec); err != nil {
			return nil, false, err
		}
	}
	if err := m.compareImage(sb, spec); err != nil {
		return nil, false, err
	}
	if err := m.cfg.Engine.Admit(recipeOf(sb)); err != nil {
		return nil, false, err
	}
	e := newEntry(sb)
	e.sem <- struct{}{}
	defer e.unlock()
	if there, err := m.reserve(e); err != nil || there {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			m.unregister(e)
		}
	}()
	ctx, span := trace.Start(ctx, "sandbox.create", trace.String("atoll.sandbox_id", string(sb.ID)))
	defer span.End()
	recorded := sb.Clone()
	there, err := m.cfg.Records.Create(ctx, grant, recorded)
	if err != nil {
		return nil, false, err
	}
	m.publish(e, recorded)
	if there != nil {
		return nil, false, &sandbox.ElsewhereError{Sandbox: there, Executor: there.Executor}
	}
	// From here on the caller's going away changes nothing.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	if err := m.start(work, grant, e, func(r Recipe) (Live, error) {
		if from != nil {
			return m.startFrom(work, from, r, spec.FilesOnly)
		}
		making, cancel := context.WithTimeout(work, makeTime)
		defer cancel()
		return m.cfg.Engine.Create(making, r)
	}); err != nil {
		span.Fail(err)
		return nil, false, errors.Join(err, m.cfg.Records.Delete(context.WithoutCancel(ctx), sb.ID))
	}
	m.cfg.Log.InfoContext(ctx, "named sandbox made", "sandbox_id", string(sb.ID), "tenant", sb.Tenant, "image", sb.Image)
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.sb.Clone(), true, nil
}

// draft is the sandbox that a spec asks for, if grant allows it.
func (m *Manager) draft(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, error) {
	if err := grant.Allows(grant.Limits); err != nil {
		return nil, err
	}
	if err := redact.Validate(grant.Secrets); err != nil {
		return nil, err
	}
	if err := m.cfg.AdmitDisk(); err != nil {
		return nil, err
	}
	var image string
	var err error
	if spec.Image != "" && !spec.ImageAssumed && !m.isEnvironments(grant, spec.Image) {
		image, err = m.cfg.Images.Provide(ctx, spec.Image)
	} else {
		image, err = m.cfg.Images.Named(ctx, grant.Image)
	}
	if err != nil {
		return nil, err
	}
	mounts, err := mountsOf(grant, spec.SubPaths)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	sb := &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: grant.Tenant, Environment: grant.Environment, Session: session, Name: name, Key: grant.Key, Executor: m.cfg.Executor,
		Image: image, ImageAlias: spec.Image, Limits: grant.Limits, Own: spec.Size, Disk: minBound(m.cfg.DiskLimit, grant.Plan.MaxSandboxDisk),
		Permissions: grant.Permissions, Mounts: mounts, Env: maps.Clone(spec.Env),
		State: sandbox.Creating, SleepAfter: spec.SleepAfter, CreatedAt: now, UsedAt: now, MeteredAt: now,
	}
	if err := setSize(sb, spec.Size); err != nil {
		return nil, err
	}
	sb.Connected = !sb.Permissions.Network.Blocked()
	if spec.SleepAfter == 0 {
		sb.SleepAfter = m.cfg.SleepAfter
	}
	if err := setTimeout(grant, sb, spec.Timeout, now); err != nil {
		return nil, err
	}
	if spec.Network != nil {
		if err := setNetwork(grant, sb, *spec.Network); err != nil {
			return nil, err
		}
	}
	return sb, nil
}

// compareImage notes on a sandbox that its image has another version than was asked for, or
// refuses that.
func (m *Manager) compareImage(sb *sandbox.Sandbox, spec *sandbox.Spec) error {
	if sb.ImageAlias == "" || spec.ImageAssumed {
		return nil
	}
	if spec.ImageExact {
		return m.cfg.Images.Exact(sb.ImageAlias, sb.Image)
	}
	sb.ImageWarning = m.cfg.Images.Warning(sb.ImageAlias, sb.Image)
	return nil
}

// isEnvironments reports whether what was asked for is the image of grant's environment, which
// then has its packages.
func (m *Manager) isEnvironments(grant *sandbox.Grant, asked string) bool {
	if grant.PackagedImage == "" {
		return false
	}
	if asked == grant.PackagedImage {
		return true // also one that is not there yet
	}
	name, err := m.cfg.Images.Resolve(asked)
	return err == nil && name == grant.PackagedImage
}

// minBound is the smaller of two bounds of which 0 is none.
func minBound(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func recipeOf(s *sandbox.Sandbox) Recipe {
	return Recipe{ID: s.ID, Tenant: s.Tenant, Image: s.Image, Limits: s.Limits, Disk: s.Disk, Permissions: s.Permissions, Connected: s.Connected, Mounts: s.Mounts}
}

// reserve makes e's name known, unless it is.
func (m *Manager) reserve(e *entry) (there bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return false, errClosing
	case m.byName[addressOfSandbox(e.sb)] != nil:
		return true, nil
	case m.cfg.MaxSandboxes > 0 && len(m.byID) >= m.cfg.MaxSandboxes:
		return false, fault.New(fault.Unavailable, "this server has %d sandboxes, which is its limit; nothing was started. Retry when others have ended", len(m.byID))
	}
	m.register(e)
	return false, nil
}

var errClosing = fault.New(fault.Unavailable, "the server is shutting down; nothing was started. Retry in a few seconds")

// start has what e's sandbox is recorded as made.
func (m *Manager) start(ctx context.Context, grant *sandbox.Grant, e *entry, made func(Recipe) (Live, error)) error {
	live, err := made(recipeOf(m.current(e)))
	if err != nil {
		return err
	}
	if err := m.applyNetwork(grant, e, live); err != nil {
		return errors.Join(err, live.Destroy(ctx))
	}
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.Move(sandbox.Running, "") }); err != nil {
		return errors.Join(err, live.Destroy(ctx))
	}
	m.mu.Lock()
	e.live, e.usedAt = live, time.Now()
	m.mu.Unlock()
	return nil
}
