package tenant

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// AuthTTL is how long Atoll caches the store's answer about a key. A revocation in another process
// reaches this one within AuthTTL.
const AuthTTL = 10 * time.Second

// maxCached limits the cached keys, valid and invalid ones separately, so that guesses neither fill
// the memory nor evict the keys in use.
const maxCached = 10_000

// principals finds callers; a Store implements it.
type principals interface {
	Principal(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	Key(ctx context.Context, tenantID ID, idOrName string) (Key, error)
	Enter(ctx context.Context, p *Principal, idOrName string) error
	Bearer(ctx context.Context, hash [32]byte) (p Principal, left time.Duration, err error)
	TokenHolder(ctx context.Context, tenantID ID, id string, begun bool) (Principal, error)
}

// Authority authenticates callers and caches the result for AuthTTL.
type Authority struct {
	store principals

	mu     sync.RWMutex
	good   map[[32]byte]belief    // guarded by mu
	bad    map[[32]byte]time.Time // guarded by mu; until when
	change int64                  // guarded by mu; counts the calls of Forget
}

type belief struct {
	caller *Principal
	until  time.Time
}

// NewAuthority returns an Authority over a store.
func NewAuthority(store principals) *Authority {
	return &Authority{store: store, good: map[[32]byte]belief{}, bad: map[[32]byte]time.Time{}}
}

// Holder returns the caller that holds a key or token, by its id. It returns an Unauthorized fault
// if the key or token is not valid. It does not cache the result.
func (a *Authority) Holder(ctx context.Context, tenantID ID, keyID string) (Principal, error) {
	return a.holder(ctx, tenantID, keyID, false)
}

// holder is Holder. With begun, an expired token remains valid for work that it started.
func (a *Authority) holder(ctx context.Context, tenantID ID, keyID string, begun bool) (Principal, error) {
	if IsToken(keyID) {
		p, err := a.store.TokenHolder(ctx, tenantID, keyID, begun)
		if fault.KindOf(err) == fault.NotFound {
			err = errUnauthorized
		}
		return p, err
	}
	k, err := a.store.Key(ctx, tenantID, keyID)
	if err == nil {
		var p Principal
		if p, _, err = a.store.Principal(ctx, k.Hash); err == nil {
			return p, nil
		}
	}
	if fault.KindOf(err) == fault.NotFound {
		return Principal{}, errUnauthorized
	}
	return Principal{}, err
}

// Entrant is Holder for work that started in an environment, by its id. Work that a token started
// continues after the token expires, and ends when the token or its key is revoked.
func (a *Authority) Entrant(ctx context.Context, tenantID ID, keyID, environment string) (Principal, error) {
	p, err := a.holder(ctx, tenantID, keyID, true)
	if err == nil {
		err = a.Enter(ctx, &p, environment)
	}
	return p, err
}

// Enter moves a caller into an environment of its tenant, by id or name; "" means its own. To enter
// an environment other than its own, a key needs the scope environments, with which it could
// reconfigure its own environment anyway.
func (a *Authority) Enter(ctx context.Context, p *Principal, idOrName string) error {
	if own := &p.Environment; idOrName == "" || own.ID != "" && (idOrName == own.ID || idOrName == own.Name) {
		return nil
	}
	if !p.May(ScopeEnvironments) {
		return errEntry
	}
	err := a.store.Enter(ctx, p, idOrName)
	if fault.KindOf(err) == fault.NotFound {
		return ErrNoEnvironment
	}
	return err
}

// Within returns a caller in another environment of its tenant, by id, without checking scopes. Use
// it only to redact that environment's secrets. If the environment was deleted, so were its
// secrets, and the caller stays in its own.
func (a *Authority) Within(ctx context.Context, p Principal, environment string) (Principal, error) {
	if environment == p.Environment.ID {
		return p, nil
	}
	err := a.store.Enter(ctx, &p, environment)
	if fault.KindOf(err) == fault.NotFound {
		err = nil
	}
	return p, err
}

var (
	errEntry = fault.New(fault.Forbidden, "this key is limited to its environment; to use another one, it needs the scope environments")
	// ErrNoEnvironment is returned if the tenant has no such environment.
	ErrNoEnvironment = fault.New(fault.NotFound, "environment not found")
)

// Authenticate returns the caller that holds a key. Unknown, expired and revoked keys and keys of
// disabled tenants get the same Unauthorized fault in the same way. If the store is unavailable,
// every key gets an Unavailable fault. Callers share the data behind the Principal and must not
// modify it.
func (a *Authority) Authenticate(ctx context.Context, token string) (Principal, error) {
	if _, ok := ParseToken(token); ok { // a refusal that is cached would hold where the token is good
		return Principal{}, errToken
	}
	return a.authenticate(ctx, HashKey(token), a.store.Principal)
}

// AuthenticateToken is Authenticate for tokens. Authenticate rejects tokens, so that only APIs that
// enforce a token's limits accept them.
func (a *Authority) AuthenticateToken(ctx context.Context, text string) (Principal, error) {
	hash, ok := ParseToken(text)
	if !ok {
		return Principal{}, errUnauthorized
	}
	return a.authenticate(ctx, hash, a.store.Bearer)
}

func (a *Authority) authenticate(ctx context.Context, hash [32]byte, find func(context.Context, [32]byte) (Principal, time.Duration, error)) (Principal, error) {
	asked := time.Now()
	a.mu.RLock()
	known, bad, change := a.good[hash], a.bad[hash], a.change
	a.mu.RUnlock()
	switch {
	case asked.Before(known.until):
		return *known.caller, nil
	case asked.Before(bad):
		return Principal{}, errUnauthorized
	}

	p, left, err := find(ctx, hash)
	switch {
	case err == nil:
		p.remember()
		until := asked.Add(AuthTTL)
		if left > 0 {
			until = asked.Add(min(left, AuthTTL))
		}
		a.mu.Lock()
		if a.change == change { // otherwise it may have been read before the change
			delete(a.bad, hash)
			put(a.good, hash, belief{&p, until})
		}
		a.mu.Unlock()
		return p, nil
	case fault.KindOf(err) == fault.NotFound:
		a.mu.Lock()
		if a.change == change {
			delete(a.good, hash)
			put(a.bad, hash, asked.Add(AuthTTL))
		}
		a.mu.Unlock()
		return Principal{}, errUnauthorized
	default:
		return Principal{}, fault.Wrap(fault.Unavailable, err, "API keys cannot be checked right now; nothing was done. Retry in a few seconds")
	}
}

var (
	errUnauthorized = fault.New(fault.Unauthorized, "invalid API key")
	errToken        = fault.New(fault.Unauthorized, "this API does not accept tokens: send an API key, "+KeyPrefix+"…")
)

// put adds to a bounded map. If the map is full, it evicts an arbitrary entry, which costs one more
// store query.
func put[V any](m map[[32]byte]V, hash [32]byte, v V) {
	if _, there := m[hash]; !there && len(m) >= maxCached {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[hash] = v
}

// Forget empties the cache. Call it after each change of the data in a Principal.
func (a *Authority) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change++
	clear(a.good)
	clear(a.bad)
}

// drop removes one key or token from the cache.
func (a *Authority) drop(hash [32]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change++
	delete(a.good, hash)
}
