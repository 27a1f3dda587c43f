package sandboxes

import (
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// redactorCache keeps what is to be covered in the output of programs: making it takes
// longer than a small program.
type redactorCache struct {
	mu      sync.Mutex
	entries []redactor // guarded by mu; the one used last comes first
}

type redactor struct {
	secrets, rules []string
	set            *redact.Set
	used           time.Time
}

// maxRedactors bounds the sets kept.
const maxRedactors = 32

// get returns the set of some secrets, with the rules that are not off.
func (s *redactorCache) get(secrets, rules, off []string) (*redact.Set, error) {
	if len(off) > 0 {
		rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return slices.Contains(off, rule) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.entries, func(c redactor) bool { return slices.Equal(c.secrets, secrets) && slices.Equal(c.rules, rules) })
	var found redactor
	if i >= 0 {
		found = s.entries[i]
		s.entries = slices.Delete(s.entries, i, i+1)
	} else {
		set, err := redact.New(redact.Config{Secrets: secrets, Rules: slices.Concat([]string{}, rules)})
		if err != nil {
			return nil, err
		}
		found = redactor{secrets: secrets, rules: rules, set: set}
	}
	found.used = time.Now()
	s.entries = slices.Insert(s.entries, 0, found)
	clear(s.entries[min(len(s.entries), maxRedactors):])
	s.entries = s.entries[:min(len(s.entries), maxRedactors)]
	return found.set, nil
}

// expire forgets sets, and the secrets in them, that were not used for some time.
func (s *redactorCache) expire(unused time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = slices.DeleteFunc(s.entries, func(c redactor) bool { return time.Since(c.used) > unused })
}

// mergeSecrets is what is known of secrets, and more of them. Where all together are more
// than can be found in output, those known longest go.
func mergeSecrets(known, more []string) []string {
	if !slices.ContainsFunc(more, func(s string) bool { return !slices.Contains(known, s) }) {
		return known
	}
	all := slices.Clone(known)
	size := 0
	for _, s := range more {
		if !slices.Contains(known, s) {
			all = append(all, s)
		}
	}
	for _, s := range all {
		size += len(s)
	}
	return slices.DeleteFunc(all, func(s string) bool {
		if size <= redact.MaxSecrets || slices.Contains(more, s) {
			return false
		}
		size -= len(s)
		return true
	})
}
