package redact

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// Sets keeps the Sets that were asked for: an environment's are the same for all of its
// jobs, and making one takes longer than a small program. The zero Sets is ready for use.
type Sets struct {
	mu   sync.Mutex
	made map[[32]byte]*Set // guarded by mu
}

// mostSets bounds the sets kept. Which one makes room is left to chance.
const mostSets = 64

// Get returns the Set of some secrets and the rules of some names; nil is none.
func (s *Sets) Get(secrets, rules []string) (*Set, error) {
	h := sha256.New()
	for _, list := range [][]string{secrets, rules} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(list)))
		h.Write(n[:])
		for _, v := range list {
			binary.LittleEndian.PutUint64(n[:], uint64(len(v)))
			h.Write(n[:])
			h.Write([]byte(v))
		}
	}
	key := [32]byte(h.Sum(nil))
	s.mu.Lock()
	set := s.made[key]
	s.mu.Unlock()
	if set != nil {
		return set, nil
	}
	if rules == nil {
		rules = []string{} // none, where New takes nil for all
	}
	set, err := New(Config{Secrets: secrets, Rules: rules})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = map[[32]byte]*Set{}
	}
	for k := range s.made {
		if len(s.made) < mostSets {
			break
		}
		delete(s.made, k)
	}
	s.made[key] = set
	return set, nil
}
