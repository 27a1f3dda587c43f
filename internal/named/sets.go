package named

import (
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/redact"
	"github.com/atoll-run/atoll/internal/tenant"
)

// sets keeps what is to be covered in the output of a caller's programs: making
// it takes longer than a small program.
type sets struct {
	mu   sync.Mutex
	made []coverage // guarded by mu; the one used last comes first
}

type coverage struct {
	secrets, rules []string
	set            *redact.Set
}

// mostSets bounds the sets kept.
const mostSets = 32

// get returns the set of a caller, with the rules that its tenant has not
// switched off.
func (s *sets) get(p *tenant.Principal, rules []string) (*redact.Set, error) {
	secrets := p.Secrets()
	if off := p.Tenant.RedactionOff; len(off) > 0 {
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
		found = coverage{secrets, rules, set}
	}
	s.made = slices.Insert(s.made, 0, found)
	s.made = s.made[:min(len(s.made), mostSets)]
	return found.set, nil
}
