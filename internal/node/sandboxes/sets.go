package sandboxes

import (
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// sets keeps what is to be covered in the output of programs: making it takes
// longer than a small program.
type sets struct {
	mu   sync.Mutex
	made []coverage // guarded by mu; the one used last comes first
}

type coverage struct {
	secrets, rules []string
	set            *redact.Set
	used           time.Time
}

// mostSets bounds the sets kept.
const mostSets = 32

// get returns the set of some secrets, with the rules that are not off.
func (s *sets) get(secrets, rules, off []string) (*redact.Set, error) {
	if len(off) > 0 {
		rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return slices.Contains(off, rule) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.made, func(c coverage) bool { return slices.Equal(c.secrets, secrets) && slices.Equal(c.rules, rules) })
	var found coverage
	if i >= 0 {
		found = s.made[i]
		s.made = slices.Delete(s.made, i, i+1)
	} else {
		set, err := redact.New(redact.Config{Secrets: secrets, Rules: slices.Concat([]string{}, rules)})
		if err != nil {
			return nil, err
		}
		found = coverage{secrets: secrets, rules: rules, set: set}
	}
	found.used = time.Now()
	s.made = slices.Insert(s.made, 0, found)
	clear(s.made[min(len(s.made), mostSets):])
	s.made = s.made[:min(len(s.made), mostSets)]
	return found.set, nil
}

// age forgets sets, and the secrets in them, that were not used for some time.
func (s *sets) age(unused time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = slices.DeleteFunc(s.made, func(c coverage) bool { return time.Since(c.used) > unused })
}

// joined is what is known of secrets, and more of them. Where all together are more
// than can be found in output, those known longest go.
func joined(known, more []string) []string {
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
