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
	// mostKeys bounds whose keys are remembered of a sandbox's users.
	mostKeys = 16
	// mostDoubt is how long what was known of keys is believed while they cannot be
	// asked for.
	mostDoubt  = 30 * time.Second
	vouchTime  = 10 * time.Second // bounds a look at all keys
	keptUnused = 10 * time.Minute // of what covers output
)

// standing is what is known of those who use a sandbox. Manager.mu guards it.
type standing struct {
	keys []string // ids of the keys that have used it, the last one first
	// secrets are the values that its programs may have, in the order in which they
	// came; replaced and never changed.
	secrets []string
	bound   []execution.BoundSecret // of the key that made it
	boundAt time.Time               // when that was asked for
	vouched time.Time               // when it was known last that one of the keys is valid
	nobody  bool                    // none is, so that it has no network and no previews
	maker   maker                   // what was last known of that key
	granted []storage.Granted       // what it and its environment may mount, if it is valid
}

// maker is what is known of the key that made a sandbox.
type maker uint8

const (
	unheard maker = iota
	valid
	gone
)

// used notes that p uses e's sandbox. m.mu is held.
func (e *entry) usedBy(p *tenant.Principal) {
	s := &e.standing
	s.vouched, s.nobody = time.Now(), false
	if len(s.keys) > 0 && s.keys[0] == p.Key.ID {
		return
	}
	s.keys = slices.DeleteFunc(s.keys, func(id string) bool { return id == p.Key.ID })
	s.keys = slices.Insert(s.keys, 0, p.Key.ID)
	s.keys = s.keys[:min(len(s.keys), mostKeys)]
}

// learn notes secrets that programs of e's sandbox may have, and returns all there
// are.
func (m *Manager) learn(e *entry, secrets []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.standing.secrets = joined(e.standing.secrets, secrets)
	return e.standing.secrets
}

// boundOf are the secrets of the key that made e's sandbox, which the network puts
// into requests, when p uses it. Those of other keys are not: all programs of a
// sandbox share its network.
func (m *Manager) boundOf(e *entry, p *tenant.Principal) []execution.BoundSecret {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Key.ID == e.sb.Key {
		e.standing.bound, e.standing.boundAt = p.Key.BoundSecrets(), time.Now()
		e.standing.maker, e.standing.granted = valid, p.Storage
	}
	return e.standing.bound
}

// meetMaker asks who holds the key that made e's sandbox, unless that is p or is
// known well enough.
func (m *Manager) meetMaker(ctx context.Context, e *entry, p *tenant.Principal) {
	m.mu.Lock()
	sb, known := e.sb, time.Since(e.standing.boundAt) < m.cfg.AuthTTL
	m.mu.Unlock()
	if p.Key.ID == sb.Key || known {
		return
	}
	maker, err := m.cfg.Callers.Holder(ctx, sb.Tenant, sb.Key)
	m.madeBy(e, &maker, err)
}

// madeBy notes what the key that made e's sandbox has now: nothing if err says
// that it is not valid, or cannot be asked for.
func (m *Manager) madeBy(e *entry, maker *tenant.Principal, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &e.standing
	s.bound, s.boundAt = nil, time.Now()
	switch {
	case err == nil && maker.Environment.ID == e.sb.Environment:
		s.bound, s.secrets = maker.Key.BoundSecrets(), joined(s.secrets, maker.Secrets())
		s.maker, s.granted = valid, maker.Storage
	case err == nil || fault.KindOf(err) == fault.Unauthorized:
		s.maker, s.granted = gone, nil
	}
}

// voucher is the first of those who have used e's sandbox whose key is valid. err
// is Unauthorized if nobody's is.
func (m *Manager) voucher(ctx context.Context, e *entry, callers *holders) (*tenant.Principal, error) {
	m.mu.Lock()
	sb, keys := e.sb, slices.Clone(e.standing.keys)
	m.mu.Unlock()
	if !slices.Contains(keys, sb.Key) {
		keys = append(keys, sb.Key)
	}
	var first *tenant.Principal
	var unsure error
	for _, key := range keys {
		p, err := callers.holder(ctx, sb.Tenant, key)
		if err == nil && p.Environment.ID != sb.Environment {
			err = errNobody
		}
		if key == sb.Key {
			m.madeBy(e, p, err)
		}
		switch {
		case err == nil:
			m.learn(e, p.Secrets())
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
	return nil, errNobody
}

var errNobody = fault.New(fault.Unauthorized, "none of the keys that have used this sandbox is valid any more")

// Check asks of every sandbox that runs whether somebody who has used it may still,
// and puts into force what their environment and tenant allow now. One that nobody
// may use has no network from then on, and no conversations, until somebody does; one
// that has storage mounted sleeps.
func (m *Manager) Check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, vouchTime)
	defer cancel()
	m.sets.age(keptUnused)
	m.mu.Lock()
	var running []*entry
	for _, e := range m.byID {
		if e.live != nil && e.sb.State == sandbox.Running {
			running = append(running, e)
		}
	}
	m.mu.Unlock()
	callers, began := &holders{callers: m.cfg.Callers}, time.Now()
	for _, e := range running {
		p, err := m.voucher(ctx, e, callers)
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
		m.check(ctx, e, p, err, began)
	}
}

// check puts into force what came of asking about e's sandbox. Who is at its turn,
// or has begun to use it since, has it done next time.
func (m *Manager) check(ctx context.Context, e *entry, p *tenant.Principal, failed error, began time.Time) {
	if !e.tryLock() {
		return
	}
	defer e.unlock()
	m.mu.Lock()
	live, sb := e.live, e.sb
	if failed != nil && e.standing.vouched.After(began) {
		m.mu.Unlock()
		return
	}
	over := fault.KindOf(failed) == fault.Unauthorized || time.Since(e.standing.vouched) > mostDoubt
	if failed == nil {
		e.standing.vouched, e.standing.nobody = time.Now(), false
	}
	before := e.standing.nobody
	if failed != nil && over {
		e.standing.nobody = true
	}
	m.mu.Unlock()
	if live == nil || sb.State != sandbox.Running {
		return
	}
	if failed == nil {
		m.uphold(ctx, e, p)
		return
	}
	if len(sb.Mounts) > 0 && fault.KindOf(failed) == fault.Unauthorized {
		// What it does to storage it would do on behalf of nobody.
		if err := m.suspend(ctx, e, errNobody, "none of the keys that have used it is valid any more"); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot stop a sandbox that is nobody's", "sandbox_id", string(sb.ID), "error", err)
		}
		return
	}
	if !over || before {
		return
	}
	m.cfg.Log.InfoContext(ctx, "a sandbox is nobody's", "sandbox_id", string(sb.ID), "error", failed)
	if err := e.net.enforce(live, runtime.NetworkPolicy{}, nil); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot close the network of a sandbox", "sandbox_id", string(sb.ID), "error", err)
	}
	if err := live.CloseGuest(); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot end the conversation with a sandbox", "sandbox_id", string(sb.ID), "error", err)
	}
}

// uphold puts into force what p, who may use e's sandbox, and its environment allow
// it now. The turn at e is held.
func (m *Manager) uphold(ctx context.Context, e *entry, p *tenant.Principal) {
	if err := m.takeBack(ctx, e, p); err != nil {
		m.cfg.Log.WarnContext(ctx, "cannot withdraw a sandbox's storage", "sandbox_id", string(e.id), "error", err)
	}
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return
	}
	if err := m.connect(p, e, live); err != nil {
		m.cfg.Log.WarnContext(ctx, "a sandbox has no network", "sandbox_id", string(e.id), "error", err)
	}
}
