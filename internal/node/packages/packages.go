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
)

// Kind is what a mirror has packages for.
type Kind string

const (
	Pip Kind = "pip"
	NPM Kind = "npm"
	Apt Kind = "apt"
)

// List says which packages are allowed.
type List struct {
	all   bool
	names map[Kind][]string // in their normal form; "@scope/*" for all of a scope
}

var (
	pipName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	npmName = regexp.MustCompile(`^(@[a-z0-9._~-]+/)?[a-zA-Z0-9_~-][a-zA-Z0-9._~-]*$`)
	aptName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	npmAll  = regexp.MustCompile(`^@[a-z0-9._~-]+/\*$`)
	runs    = regexp.MustCompile(`[-_.]+`)
)

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
			if name = normal(Kind(kind), name); name == "" {
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

// normal is the form that names of packages are compared in; "" for what is none.
func normal(k Kind, name string) string {
	switch {
	case len(name) > 214:
	case k == NPM && npmName.MatchString(name), k == Apt && aptName.MatchString(name):
		return name
	case k == Pip:
		if name = strings.ToLower(runs.ReplaceAllString(name, "-")); pipName.MatchString(name) {
			return name
		}
	}
	return ""
}
