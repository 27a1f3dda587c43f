// Package packages lets sandboxes install packages from the operator's mirrors,
// and reach nothing else there: the pages of packages that are allowed, with
// their links led through here, and the files that such a page has linked to; of
// Debian's archive its indexes, and the files of packages that are allowed.
package packages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Kind is what a mirror has packages for.
type Kind = requirement.Kind

const (
	Pip = requirement.Pip
	NPM = requirement.NPM
	Apt = requirement.Apt
)

// List says which packages are allowed.
type List struct {
	all   bool
	names map[Kind][]string // in their normal form; "@scope/*" for all of a scope
}

var npmAll = regexp.MustCompile(`^@[a-z0-9._~-]+/\*$`)

// ParseList reads names such as "pip:requests", "npm:@scope/*", or "*".
func ParseList(list []string) (List, error) {
	l := List{names: map[Kind][]string{}}
	for _, entry := range list {
		kind, name, ok := strings.Cut(entry, ":")
		switch {
		case entry == "*":
			l.all = true
			continue
		case !ok || Kind(kind) != Pip && Kind(kind) != NPM && Kind(kind) != Apt:
			return l, fmt.Errorf("%q is not pip:, npm: or apt: and a name, nor *", entry)
		case Kind(kind) == NPM && npmAll.MatchString(name):
		default:
			if name = requirement.Normal(Kind(kind), name); name == "" {
				return l, fmt.Errorf("%q is not the name of a package", entry)
			}
		}
		l.names[Kind(kind)] = append(l.names[Kind(kind)], name)
	}
	return l, nil
}

// allows reports whether a package, in its normal form, may be installed.
func (l List) allows(k Kind, name string) bool {
	if name == "" {
		return false
	}
	scope, _, scoped := strings.Cut(name, "/")
	return l.all || slices.Contains(l.names[k], name) || scoped && slices.Contains(l.names[k], scope+"/*")
}

// Check says why a set cannot be installed from what is allowed.
func (l List) Check(s *requirement.Set) error {
	for _, kind := range requirement.Kinds {
		for _, text := range s.Of(kind) {
			name, err := requirement.Name(kind, text)
			if err != nil {
				return err
			}
			if !l.allows(kind, name) {
				return fmt.Errorf("%s: %s is not among the packages that this server allows (packages)", kind, name)
			}
		}
	}
	return nil
}
