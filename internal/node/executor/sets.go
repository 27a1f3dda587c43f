package executor

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// sets keeps the redaction sets that jobs asked for: an environment's are the
// same for all of its jobs, and making one takes longer than a small program.
type sets struct {
	mu   sync.Mutex
	made map[[32]byte]*redact.Set // guarded by mu
}

// mostSets bounds the sets kept. Which one makes room is left to chance.
const mostSets = 64

func (s *sets) get(secrets, rules []string) (*redact.Set, error) {
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
		rules = []string{} // none, where the package takes nil for all
	}
	set, err := redact.New(redact.Config{Secrets: secrets, Rules: rules})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = map[[32]byte]*redact.Set{}
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
