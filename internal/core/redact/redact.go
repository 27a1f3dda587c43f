// Package redact removes secrets from the output of programs, on the host, as the bytes pass.
//
// It replaces two kinds of text with a marker: known secrets (Config.Secrets), verbatim and in the
// usual encodings, and anything shaped like a token (Rules).
//
// The output depends only on the bytes, not on how writes split them, and after any write only on
// the bytes so far. A process that reads the same bytes again therefore produces the same output.
//
// It holds bytes back only while they may begin a secret. A line that does not end in such a
// beginning passes immediately, with its newline.
package redact

import (
	"bytes"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Limits of registered secrets, in bytes without surrounding white space. A shorter secret would
// match ordinary text by chance. A longer one would hold output back for as long as only its
// beginning was seen.
const (
	MinSecret  = 6
	MaxSecret  = 8 << 10
	MaxSecrets = 32 << 10 // of all secrets in a Set together
)

// Config selects what a Set redacts.
type Config struct {
	Secrets []string // see Validate
	Rules   []string // names from Rules; nil for all
}

// Set is a compiled, immutable Config. Any number of streams may share it.
type Set struct {
	auto   *automaton // nil if the set redacts nothing
	config Config     // the source of the set
}

// Config returns the Config that New compiled. Another process can build an equal Set from it.
// Callers must not modify it.
func (s *Set) Config() Config { return s.config }

// Validate returns an Invalid fault if a secret is too short or too long, or all together are too
// long.
func Validate(secrets []string) error {
	total := 0
	for i, s := range secrets {
		n := len(core(s))
		total += n
		switch {
		case n < MinSecret:
			return fault.New(fault.Invalid, "secret %d of %d has %d bytes; at least %d are needed to find it in output without covering ordinary text", i+1, len(secrets), n, MinSecret)
		case n > MaxSecret:
			return fault.New(fault.Invalid, "secret %d of %d has %d bytes; at most %d can be found in output", i+1, len(secrets), n, MaxSecret)
		}
	}
	if total > MaxSecrets {
		return fault.New(fault.Invalid, "the secrets together have %d bytes; at most %d can be found in output", total, MaxSecrets)
	}
	return nil
}

// all has a bit set for every spec.
var all = uint32(1)<<len(specs) - 1

// everything is the Set with all rules and no secrets, which most streams use.
var everything = sync.OnceValue(func() *Set { return build(nil, all) })

// New compiles a Set. It fails for secrets that Validate rejects and for unknown rule names.
// Without secrets and with all rules it returns a shared Set.
func New(c Config) (*Set, error) {
	if err := Validate(c.Secrets); err != nil {
		return nil, err
	}
	active := all
	if c.Rules != nil {
		active = 0
		for _, name := range c.Rules {
			if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.Name == name }) {
				return nil, fault.New(fault.Invalid, "unknown redaction rule %q", name)
			}
			for i := range specs {
				if specs[i].rule == name {
					active |= 1 << i
				}
			}
		}
	}
	if len(c.Secrets) == 0 && active == all {
		return everything(), nil
	}
	s := build(c.Secrets, active)
	s.config = c
	return s, nil
}

// Except returns the names of all rules except off, for Config.Rules. It rejects unknown names.
func Except(off []string) ([]string, error) {
	names := make([]string, 0, len(Rules))
	for _, r := range Rules {
		if !slices.Contains(off, r.Name) {
			names = append(names, r.Name)
		}
	}
	for _, name := range off {
		if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.Name == name }) {
			return nil, fault.New(fault.Invalid, "unknown redaction rule %q", name)
		}
	}
	return names, nil
}

// Bytes returns a redacted copy of b, treated as a separate stream.
func (s *Set) Bytes(b []byte) []byte {
	var out bytes.Buffer
	st := s.Stream(func(p []byte) { out.Write(p) })
	st.Write(b)
	st.Flush()
	return out.Bytes()
}

func build(secrets []string, active uint32) *Set {
	b := newBuilder()
	for i := range specs {
		if active&(1<<i) == 0 {
			continue
		}
		for _, lit := range specs[i].lits {
			b.literal(lit, uint8(i))
		}
	}
	for _, s := range secrets {
		for _, f := range forms(s) {
			b.secret(f.text, f.wraps)
		}
	}
	return &Set{auto: b.finish()}
}
