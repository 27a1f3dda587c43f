// Package redact covers secrets in the output of programs, on the host, while
// the bytes pass.
//
// Two kinds of things are covered: values that are known to be secret
// (Config.Secrets), as they are and in the usual encodings, and anything that
// has the shape of a token (Rules). Each is replaced by a marker.
//
// What comes out depends on the bytes alone, not on how they were cut into
// writes; and after any write, what has come out depends on the bytes up to
// there. So a process that reads the same bytes again produces the same.
//
// Bytes are held back only while they may be the beginning of something. A line
// that contains no such beginning at its end leaves at once, with its newline.
package redact

import (
	"bytes"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Bounds of registered secrets, in bytes after white space around them is left
// away. A shorter one would be found by chance in ordinary text; a longer one
// would be held back for as long as its beginning is all that was seen.
const (
	MinSecret  = 6
	MaxSecret  = 8 << 10
	MaxSecrets = 32 << 10 // of all secrets of a Set together
)

// Config says what a Set covers.
type Config struct {
	Secrets []string // see Validate
	Rules   []string // names out of Rules; nil stands for all of them
}

// Set is what is to be covered, made ready for use. It does not change and may
// be used by any number of streams at once.
type Set struct {
	auto   *automaton // nil when there is nothing to look for
	config Config     // what it was made from
}

// Config is what New made s from. Another process makes an equal Set from it. It must not
// be changed.
func (s *Set) Config() Config { return s.config }

// Validate tells whether values can be registered as secrets.
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

// all has a bit for every spec.
var all = uint32(1)<<len(specs) - 1

// everything is the Set of all rules and no secret, which most streams use.
var everything = sync.OnceValue(func() *Set { return build(nil, all) })

// New prepares a Set. It fails for secrets that Validate refuses and for names
// that are no rule's. Without secrets and with all rules it costs nothing.
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

// Except returns the names of all rules but those given, for Config.Rules. An
// unknown name is an error.
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

// Bytes returns b with everything covered, as a stream of its own would.
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
