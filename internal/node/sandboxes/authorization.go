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

// usedBy notes that p uses e's sandbox. m.mu is held.
func (e *entry) usedBy(p *tenant.Principal) {
	s := &e.authorization
	s.valid.Confirm()
	s.noValidKey, s.rootRefusal = false, nil
	if len(s.keys) > 0 && s.keys[0] == p.KeyID() {
		return
	}
	s.keys = slices.DeleteFunc(s.keys, func(id string) bool { return id == p.KeyID() })
	s.keys = slices.Insert(s.keys, 0, p.KeyID())
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
// into requests, when p uses it. Those of other keys are not: all programs of a
// sandbox share its network.
func (m *Manager) creatorSecrets(e *entry, p *tenant.Principal) []execution.BoundSecret {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.KeyID() == e.sb.Key {
		e.authorization.boundSecrets, e.authorization.creatorAt = p.Key.BoundSecrets(), time.Now()
		e.authorization.creator, e.authorization.creatorGrants = creatorValid, p.Storage
	}
	return e.authorization.boundSecrets
}

// refreshCreator asks who holds the key that made e's sandbox, unless that is p or is
// known well enough.
func (m *Manager) refreshCreator(ctx context.Context, e *entry, p *tenant.Principal) {
	m.mu.Lock()
	sb, known := e.sb, time.Since(e.authorization.creatorAt) < m.cfg.AuthTTL
	m.mu.Unlock()
	if p.KeyID() == sb.Key || known {
		return
	}
	maker, err := entrant(ctx, m.cfg.Callers, sb.Tenant, sb.Key, sb.Environment)
	m.setCreator(e, &maker, err)
}

// setCreator notes what the key that made e's sandbox has now: nothing if err says
// that it is not valid, or cannot be asked for.
func (m *Manager) setCreator(e *entry, maker *tenant.Principal, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &e.authorization
	s.boundSecrets, s.creatorAt = nil, time.Now()
	switch {
	case err == nil:
		s.boundSecrets, s.secrets = maker.Key.BoundSecrets(), mergeSecrets(s.secrets, maker.Secrets())
		s.creator, s.creatorGrants = creatorValid, maker.Storage
	case fault.KindOf(err) == fault.Unauthorized:
		s.creator, s.creatorGrants = creatorInvalid, nil
	}
}

// entrant is the holder of a key in the environment of a sandbox, which need not be the key's
// own: keys with the scope environments work in all of their tenant. err is Unauthorized if the
// key is not valid or may not work there any more.
func entrant(ctx context.Context, callers Callers, of tenant.ID, key, environment string) (tenant.Principal, error) {
	p, err := callers.Entrant(ctx, of, key, environment)
	switch kind := fault.KindOf(err); {
	case err == nil && p.Environment.ID == environment:
		return p, nil
	case err == nil, kind == fault.Forbidden, kind == fault.NotFound:
		return tenant.Principal{}, errNoValidKey
	}
	return p, err
}

// authorizedCaller is the last user of e's sandbox whose key is valid. err is Unauthorized if
// no such key remains.
func (m *Manager) authorizedCaller(ctx context.Context, e *entry, callers *callerCache) (*tenant.Principal, error) {
	m.mu.Lock()
	sb, keys := e.sb, slices.Clone(e.authorization.keys)
	m.mu.Unlock()
	if !slices.Contains(keys, sb.Key) {
		keys = append(keys, sb.Key)
	}
	var first *tenant.Principal
	var unsure error
	for _, key := range keys {
		p, err := callers.entrant(ctx, sb.Tenant, key, sb.Environment)
		if key == sb.Key {
			m.setCreator(e, p, err)
		}
		switch {
		case err == nil:
			m.addSecrets(e, p.Secrets())
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
	return nil, errNoValidKey
}

var errNoValidKey = fault.New(fault.Unauthorized, "every key that has used this sandbox has been revoked or may no longer work in its environment")

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
	callers, began := &callerCache{callers: m.cfg.Callers}, time.Now()
	for _, e := range running {
		p, err := m.authorizedCaller(ctx, e, callers)
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
		m.applyAuthorization(ctx, e, p, err, began)
	}
}

// applyAuthorization enforces the answer about e's sandbox to a question asked at began. A
// sandbox that is locked is left for the next time.
func (m *Manager) applyAuthorization(ctx context.Context, e *entry, p *tenant.Principal, failed error, began time.Time) {
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
		e.authorization.rootRefusal = checkRoot(p, sb)
	}
	m.mu.Unlock()
	switch {
	case live == nil, sb.State != sandbox.Running:
		return
	case failed == nil:
		m.enforce(ctx, e, p)
		return
	case !over: // a key was used meanwhile, or could not be checked for a short time
		return
	}
	if len(sb.Mounts) > 0 && fault.KindOf(failed) == fault.Unauthorized {
		// Its programs must not change storage without a valid key.
		if err := m.suspend(ctx, e, errNoValidKey, "every key that has used it has been revoked or may no longer work in its environment"); err != nil {
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

// enforce applies to e's sandbox what p, whose key is valid, and p's environment allow
// now. e is locked.
func (m *Manager) enforce(ctx context.Context, e *entry, p *tenant.Principal) {
	if err := m.withdrawStorage(ctx, e, p); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot withdraw a sandbox's storage", "sandbox_id", string(e.id), "error", err)
	}
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return
	}
	if err := m.applyNetwork(p, e, live); err != nil {
		m.cfg.Log.WarnContext(ctx, "a sandbox has no network", "sandbox_id", string(e.id), "error", err)
	}
}
