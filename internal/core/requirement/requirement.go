// Package requirement defines the packages that an environment installs into its image, and
// validates their names: a name and a version, never an option, a URL or a path.
package requirement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind names the installer of a package.
type Kind string

// Kinds lists every kind in installation order.
var Kinds = []Kind{Apt, Pip, NPM}

const (
	Apt Kind = "apt"
	Pip Kind = "pip"
	NPM Kind = "npm"
)

// Limits of a set.
const (
	MaxEach   = 100 // packages per kind
	MaxLength = 200 // characters per package
)

// Set lists packages by installer, such as "six==1.17.0", "@scope/name@1" and "jq".
type Set struct {
	Apt, Pip, NPM []string
}

// Of returns the packages of a kind.
func (s *Set) Of(k Kind) []string {
	switch k {
	case Apt:
		return s.Apt
	case Pip:
		return s.Pip
	case NPM:
		return s.NPM
	}
	return nil
}

// Empty reports whether the set contains no packages.
func (s *Set) Empty() bool { return len(s.Apt)+len(s.Pip)+len(s.NPM) == 0 }

// Equal reports whether two normalized sets are the same.
func (s *Set) Equal(o *Set) bool {
	return slices.Equal(s.Apt, o.Apt) && slices.Equal(s.Pip, o.Pip) && slices.Equal(s.NPM, o.NPM)
}

// Normal returns s sorted and without duplicates. The error names a package that cannot be
// installed, and says why.
func (s Set) Normal() (Set, error) {
	for _, list := range []struct {
		kind Kind
		of   *[]string
	}{{Apt, &s.Apt}, {Pip, &s.Pip}, {NPM, &s.NPM}} {
		if len(*list.of) == 0 {
			*list.of = nil
			continue
		}
		all := slices.Clone(*list.of)
		slices.Sort(all)
		all = slices.Compact(all)
		if len(all) > MaxEach {
			return s, fmt.Errorf("%s: has %d packages; the limit is %d", list.kind, len(all), MaxEach)
		}
		for _, text := range all {
			if _, err := Name(list.kind, text); err != nil {
				return s, err
			}
		}
		*list.of = all
	}
	return s, nil
}

var (
	pipForm = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9][A-Za-z0-9._-]*(?:,[A-Za-z0-9][A-Za-z0-9._-]*)*\])?` +
		`(?:(?:===|==|!=|<=|>=|~=|<|>)[A-Za-z0-9][A-Za-z0-9.*+!_-]*(?:,(?:==|!=|<=|>=|~=|<|>)[A-Za-z0-9][A-Za-z0-9.*+!_-]*)*)?$`)
	npmForm = regexp.MustCompile(`^((?:@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*)(?:@[A-Za-z0-9^~<>=*][A-Za-z0-9.^~<>=*+_-]*)?$`)
	// apt-get takes a last "-" or "+" as an order to remove or install, so neither a version nor a
	// name ends in one; "g++" and its like are names.
	aptForm = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*[a-z0-9]|[a-z0-9][a-z0-9+.-]*[a-z0-9.-]\+\+|[a-z0-9]\+\+)(?:=[A-Za-z0-9](?:[A-Za-z0-9.+:~-]*[A-Za-z0-9.~])?)?$`)

	pipName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	npmName = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-zA-Z0-9][a-zA-Z0-9._-]*$`)
	aptName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	runs    = regexp.MustCompile(`[-_.]+`)
	archive = regexp.MustCompile(`(?i)\.(tgz|tar|tar\.gz|whl|zip|deb)$`) // installers take such names for files
)

// npmReserved lists names that the npm registry rejects.
var npmReserved = []string{"node_modules", "favicon.ico"}

// forms describes the syntax of a package per kind, with the name as the first group.
var forms = map[Kind]struct {
	form *regexp.Regexp
	says string
}{
	Apt: {aptForm, `a name of Debian's such as "jq", or "jq=1.7.1-3"`},
	Pip: {pipForm, `a name such as "six", with a version "six==1.17.0" or bounds "six>=1.16,<2"`},
	NPM: {npmForm, `a name such as "left-pad" or "@scope/name", with a version "left-pad@1.3.0"`},
}

// Name returns the normalized name of a package, without extras and version. The error says how to
// write the package.
func Name(k Kind, text string) (string, error) {
	f := forms[k]
	if len(text) <= MaxLength && !archive.MatchString(text) {
		if found := f.form.FindStringSubmatch(text); found != nil {
			if name := Normal(k, found[1]); name != "" {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("%s: cannot install %.80q; want %s, without options, URLs, paths or spaces", k, text, f.says)
}

// Normal normalizes a package name for comparison. It returns "" for an invalid name.
func Normal(k Kind, name string) string {
	switch {
	case len(name) > 214, k == NPM && slices.Contains(npmReserved, strings.ToLower(name)):
	case k == NPM && npmName.MatchString(name), k == Apt && aptName.MatchString(name):
		return name
	case k == Pip:
		if name = strings.ToLower(runs.ReplaceAllString(name, "-")); pipName.MatchString(name) {
			return name
		}
	}
	return ""
}

// ImagePrefix starts the names of images with packages in image stores, and of no other images.
const ImagePrefix = "packages-"

// refPrefix starts every reference. No image in a store can have such a name.
const refPrefix = "packages:"

// Ref returns a reference that identifies an image by its base image and normalized package set.
// For an empty set it returns the base image's name.
func Ref(image string, s *Set) string {
	if s.Empty() {
		return image
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", image)
	for _, k := range Kinds {
		fmt.Fprintf(h, "%s %q\n", k, s.Of(k))
	}
	return refPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// IsRef reports whether a name is the reference of an image with packages.
func IsRef(name string) bool { return strings.HasPrefix(name, refPrefix) }
