package home

import (
	"context"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxTenants limits the tenants of which a Store keeps keys or an index.
const maxTenants = 4096

// Learned is the Config.Keys of a Store on a server without the operator's key. The Store has only
// the keys that a Cache learns from executions.
func Learned(_ context.Context, tenant string) ([]byte, error) {
	return nil, fault.New(fault.Unavailable, "this server has no key for the stored files of the tenant %q; run the same version of Atoll on all servers, and retry", tenant)
}

// tenant returns a tenant's part of the Store, with its keys.
func (s *Store) tenant(ctx context.Context, name string) (*tenantStore, error) {
	s.mu.Lock()
	t := s.tenants[name]
	s.mu.Unlock()
	if t != nil && t.keys.object != nil {
		return t, nil
	}
	key, err := s.cfg.Keys(ctx, name)
	if err != nil {
		return nil, err
	}
	k, err := splitKey(name, key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(name, k), nil
}

// use keeps a tenant's keys until the caller calls release. A key that comes with an execution is
// learned: the Store forgets it when its last user has released it. Without one, use asks Keys.
func (s *Store) use(ctx context.Context, name string, key []byte) (release func(), err error) {
	if key != nil {
		return s.learn(name, key)
	}
	for {
		t, err := s.tenant(ctx, name)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		same := s.tenants[name] == t // otherwise the Store has just dropped it
		if same {
			t.users++
		}
		s.mu.Unlock()
		if same {
			return s.releaser(t), nil
		}
	}
}

func (s *Store) learn(name string, key []byte) (release func(), err error) {
	k, err := splitKey(name, key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	switch {
	case t == nil || t.keys.object == nil:
		t = s.set(name, k)
		t.learned = true
	case !t.keys.equal(k):
		return nil, fault.New(fault.Internal, "an execution of the tenant %q came with another key than earlier ones; set secret_key to the same key on all servers", name)
	}
	t.users++
	return s.releaser(t), nil
}

func (s *Store) releaser(t *tenantStore) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 && t.learned {
			s.drop(t)
		}
	})
}

// set keeps a tenant's keys, unless the Store has them. s.mu is held.
func (s *Store) set(name string, k keys) *tenantStore {
	t := s.tenants[name]
	switch {
	case t != nil && t.keys.object != nil:
		return t
	case t != nil:
		t = &tenantStore{in: t.in, name: name, keys: k, index: t.index} // readers of the old one hold no lock
	default:
		s.makeRoom()
		t = &tenantStore{in: s.cfg.Folder, name: name, keys: k, index: &index{}}
	}
	s.tenants[name] = t
	return t
}

// makeRoom drops an unused tenant if the Store holds too many. s.mu is held.
func (s *Store) makeRoom() {
	if len(s.tenants) < maxTenants {
		return
	}
	for name, t := range s.tenants {
		if t.users == 0 {
			delete(s.tenants, name)
			return
		}
	}
}

// drop forgets a tenant's keys, but not the index of its packs: building it again takes many reads.
// s.mu is held.
func (s *Store) drop(t *tenantStore) {
	s.tenants[t.name] = &tenantStore{in: t.in, name: t.name, index: t.index}
}

// Forget drops a tenant's keys and index from memory; the next call asks Keys again. Keys that a
// Home in use needs stay until the Home is closed.
func (s *Store) Forget(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	switch {
	case t == nil:
	case t.users > 0:
		t.learned = true // its last user drops it
	default:
		delete(s.tenants, tenant)
	}
}
