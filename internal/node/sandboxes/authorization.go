package sandboxes

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	// maxKeys is how many of the keys that used a sandbox are remembered, the last ones.
	maxKeys = 16
	// authTime bounds checking the keys of all sandboxes, and redactorIdle is how long
	// an unused redactor is kept.
	authTime     = 10 * time.Second
	redactorIdle = 10 * time.Minute
)

// authorization is what is known of the keys that use a sandbox. Manager.mu guards it.
type authorization struct {
	keys []string // ids of the keys that have used it, the last one first
	// secrets are the values that its programs may have, in the order in which they
	// came; replaced and never changed.
	secrets       []string
	boundSecrets  []execution.BoundSecret // of the key that made it
	creatorAt     time.Time               // when that was asked for
	valid         *tenant.Authorization   // that one of the keys is valid; never replaced
	noValidKey    bool                    // no key is valid, so it has no network and no previews
	rootRefusal   error                   // why it has no previews: see checkRoot; nil if it has
	creator       creatorState            // what was last known of that key
	creatorGrants []storage.Granted       // what it and its environment may mount, if it is valid
}

// creatorState is what is known of the key that made a sandbox.
type creatorState uint8

const (
	creatorUnknown creatorState = iota
	creatorValid
	creatorInvalid
)

// usedBy notes that grant's key uses e's sandbox. m.mu is held.
func (e *entry) usedBy(grant *sandbox.Grant) {
	s := &e.authorization
	s.valid.Confirm()
	s.noValidKey, s.rootRefusal = false, nil
	if len(s.keys) > 0 && s.keys[0] == grant.Key {
		return
	}
	s.keys = slices.DeleteFunc(s.keys, func(id string) bool { return id == grant.Key })
	s.keys = slices.Insert(s.keys, 0, grant.Key)
	s.keys = s.keys[:min(len(s.keys), maxKeys)]
}

// addSecrets notes secrets that programs of e's sandbox may have, and returns all there
// are.
func (m *Manager) addSecrets(e *entry, secrets []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.authorization.secrets = mergeSecrets(e.authorization.secrets, secrets)
	return e.authorization.secrets
}

// creatorSecrets are the secrets of the key that made e's sandbox, which the network puts
// into requests, when grant's key uses it. Those of other keys are not: all programs of a
// sandbox share its network.
func (m *Manager) creatorSecrets(e *entry, grant *sandbox.Grant) []execution.BoundSecret {
	m.mu.Lock()
	defer m.mu.Unlock()
	if grant.Key == e.sb.Key {
		e.authorization.boundSecrets, e.authorization.creatorAt = grant.KeySecrets, time.Now()
		e.authorization.creator, e.authorization.creatorGrants = creatorValid, grant.Storage
	}
	return e.authorization.boundSecrets
}

// refreshCreator asks who holds the key that made e's sandbox, unless that is grant's or is
// known well enough.
func (m *Manager) refreshCreator(ctx context.Context, e *entry, grant *sandbox.Grant) {
	m.mu.Lock()
	sb, known := e.sb, time.Since(e.authorization.creatorAt) < m.cfg.AuthTTL
	m.mu.Unlock()
	if grant.Key == sb.Key || known {
		return
	}
	maker, err := m.cfg.Grants.Grant(ctx, sb.Tenant, sb.Key, sb.Environment)
	m.setCreator(e, maker, err)
}

// setCreator notes what the key that made e's sandbox has now: nothing if err says
// that it is not valid, or cannot be asked for.
func (m *Manager) setCreator(e *entry, maker *sandbox.Grant, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &e.authorization
	s.boundSecrets, s.creatorAt = nil, time.Now()
	switch {
	case err == nil:
		s.boundSecrets, s.secrets = maker.KeySecrets, mergeSecrets(s.secrets, maker.Secrets)
		s.creator, s.creatorGrants = creatorValid, maker.Storage
	case fault.KindOf(err) == fault.Unauthorized:
		s.creator, s.creatorGrants = creatorInvalid, nil
	}
}

// validGrant is the grant of the last user of e's sandbox whose key is valid. err is Unauthorized if
// no such key remains.
func (m *Manager) validGrant(ctx context.Context, e *entry, grants *grantCache) (*sandbox.Grant, error) {
	m.mu.Lock()
	sb, keys := e.sb, slices.Clone(e.authorization.keys)
	m.mu.Unlock()
	if !slices.Contains(keys, sb.Key) {
		keys = append(keys, sb.Key)
	}
	var first *sandbox.Grant
	var unsure error
	for _, key := range keys {
		p, err := grants.get(ctx, sb.Tenant, key, sb.Environment)
		if key == sb.Key {
			m.setCreator(e, p, err)
		}
		switch {
		case err == nil:
			m.addSecrets(e, p.Secrets)
			if first == nil {
				first = p
			}
		case fault.KindOf(err) != fault.Unauthorized:
			unsure = err
		}
	}
	switch {
	case first != nil:
		return first, nil
	case unsure != nil:
		return nil, unsure
	}
	return nil, sandbox.ErrNoValidKey
}

// Reauthorize checks for every running sandbox whether a key that has used it is still
// valid, and enforces what the key's environment and tenant allow now. A sandbox without a
// valid key loses its network and the connections to its guest daemon until a valid key
// uses it; if it has storage mounted, it is put to sleep.
func (m *Manager) Reauthorize(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, authTime)
	defer cancel()
	m.redactors.expire(redactorIdle)
	m.mu.Lock()
	var running []*entry
	for _, e := range m.byID {
		if e.live != nil && e.sb.State == sandbox.Running {
			running = append(running, e)
		}
	}
	m.mu.Unlock()
	grants, began := &grantCache{grants: m.cfg.Grants}, time.Now()
	for _, e := range running {
		p, err := m.validGrant(ctx, e, grants)
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
		m.applyAuthorization(ctx, e, p, err, began)
	}
}

// applyAuthorization enforces the answer about e's sandbox to a question asked at began. A
// sandbox that is locked is left for the next time.
func (m *Manager) applyAuthorization(ctx context.Context, e *entry, grant *sandbox.Grant, failed error, began time.Time) {
	if !e.tryLock() {
		return
	}
	defer e.unlock()
	m.mu.Lock()
	live, sb := e.live, e.sb
	over := e.authorization.valid.Settle(began, failed) != nil
	before := e.authorization.noValidKey
	if failed == nil || over {
		e.authorization.noValidKey = over
	}
	if failed == nil {
		e.authorization.rootRefusal = checkRoot(grant, sb)
	}
	m.mu.Unlock()
	switch {
	case live == nil, sb.State != sandbox.Running:
		return
	case failed == nil:
		m.enforce(ctx, e, grant)
		return
	case !over: // a key was used meanwhile, or could not be checked for a short time
		return
	}
	if len(sb.Mounts) > 0 && fault.KindOf(failed) == fault.Unauthorized {
		// Its programs must not change storage without a valid key.
		if err := m.suspend(ctx, e, sandbox.ErrNoValidKey, "every key that has used it has been revoked or may no longer work in its environment"); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot stop a sandbox without a valid key", "sandbox_id", string(sb.ID), "error", err)
		}
		return
	}
	if before {
		return
	}
	m.cfg.Log.InfoContext(ctx, "no valid key of a sandbox remains; its network is closed", "sandbox_id", string(sb.ID), "error", failed)
	if err := e.net.apply(live, runtime.NetworkPolicy{}, nil); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot close the network of a sandbox", "sandbox_id", string(sb.ID), "error", err)
	}
	if err := live.CloseGuest(); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot close the connection to a sandbox", "sandbox_id", string(sb.ID), "error", err)
	}
}

// enforce applies to e's sandbox what grant, whose key is valid, allows
// now. e is locked.
func (m *Manager) enforce(ctx context.Context, e *entry, grant *sandbox.Grant) {
	if err := m.withdrawStorage(ctx, e, grant); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot withdraw a sandbox's storage", "sandbox_id", string(e.id), "error", err)
	}
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return
	}
	if err := m.applyNetwork(grant, e, live); err != nil {
		m.cfg.Log.WarnContext(ctx, "a sandbox has no network", "sandbox_id", string(e.id), "error", err)
	}
}
