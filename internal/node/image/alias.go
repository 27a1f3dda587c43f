package image

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// Aliases say which image of a store is meant by what callers call one, such as
// the reference "node:22" of a registry.
type Aliases struct {
	Store interface {
		Get(name string) (*Image, error)
		List() ([]*Image, error)
	}
	Default string            // the image that stands for those of languages, if its interpreter is new enough
	Names   map[string]string // the operator's; "node:*" is for all tags that are not named
	Pull    *Pull             // nil: what is missing is not imported

	// Packages returns the name of an environment's image, which may be a reference to one
	// with packages, or a variant of the default image that must be made first; nil where there
	// are none.
	Packages func(ctx context.Context, image string) (string, error)
}

// Named returns the name in the store of an environment's image.
func (a *Aliases) Named(ctx context.Context, image string) (string, error) {
	if a.Packages == nil {
		return image, nil
	}
	return a.Packages(ctx, image)
}

// reference is what an image can be asked for as.
var reference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$`)

// Resolve returns the name of the stored image to use for asked. It tries, in this order: the
// operator's table, the image with that name, the default image if its language has the requested
// version, the image imported by that reference, and the default image if its version is later.
// Warning reports the last case. Resolve fetches nothing.
func (a *Aliases) Resolve(asked string) (string, error) {
	name, _, err := a.find(asked)
	return name, err
}

// find implements Resolve. standIn reports that the image has another version than requested.
func (a *Aliases) find(asked string) (name string, standIn bool, err error) {
	if requirement.LikeVariant(asked) {
		name, err = a.findVariant(asked)
		return name, false, err
	}
	if !reference.MatchString(asked) || unclean(asked) {
		return "", false, fault.New(fault.Invalid, "image: %.80q is no image's name; want one such as \"default\" or \"node:22\"", asked)
	}
	for _, alias := range aliases(asked) {
		if name, ok := a.Names[alias]; ok {
			if _, err := a.Store.Get(name); err != nil {
				return "", false, fault.Wrap(fault.Invalid, err, "image: the setting image_aliases maps "+strconv.Quote(asked)+" to the image "+strconv.Quote(name)+", which this server does not have; ask the operator to import it with 'atoll image import --name "+name+" ...'")
			}
			return name, false, nil
		}
	}
	if CheckName(asked) == nil && !Extended(asked) {
		if ok, err := a.has(asked); ok || err != nil {
			return asked, false, err
		}
	}
	version := a.defaultVersion(asked)
	if version == sameVersion {
		return a.Default, false, nil
	}
	if name, err := a.imported(asked); name != "" || err != nil {
		return name, false, err
	}
	if version == laterVersion {
		return a.Default, true, nil
	}
	return "", false, a.unknown(asked)
}

// findVariant returns a stored variant of the default image.
func (a *Aliases) findVariant(asked string) (string, error) {
	if !requirement.IsVariant(asked) {
		return "", fault.New(fault.Invalid, "image: %.80q is not a variant of the default image; the variants are %s", asked, strings.Join(requirement.Variants(), ", "))
	}
	there, err := a.has(asked)
	if err == nil && !there {
		err = fault.New(fault.Invalid, "image: this server has no image %q; its operator can build it with '%s'", asked, requirement.VariantCommand(asked))
	}
	return asked, err
}

// has reports whether the store has an image.
func (a *Aliases) has(name string) (bool, error) {
	_, err := a.Store.Get(name)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// imported returns the image that was imported by a registry reference; "" if none was.
func (a *Aliases) imported(asked string) (string, error) {
	if name, ok := pulledName(asked); ok && a.Pull != nil {
		if there, err := a.has(name); there || err != nil {
			return name, err
		}
	}
	reference, err := source.Canonical(asked)
	if err != nil {
		return "", nil // not a reference that can be imported
	}
	all, err := a.Store.List()
	if err != nil {
		return "", err
	}
	for _, img := range all {
		if img.importedBy(reference) {
			return img.Name, nil
		}
	}
	return "", nil
}

// unclean reports whether a part of a name would be gone, or another, once its
// path is cleaned.
func unclean(asked string) bool {
	repository, _ := splitReference(asked)
	return slices.ContainsFunc(strings.Split(repository, "/"), func(part string) bool { return part == "" || part == "." || part == ".." })
}

// aliases are the names in the operator's table that mean what was asked for, the
// closest first.
func aliases(asked string) []string {
	repository, tag := splitReference(asked)
	return []string{asked, repository + ":" + tag, repository + ":*"}
}

// aliased reports whether the operator's table says what is meant.
func (a *Aliases) aliased(asked string) bool {
	return slices.ContainsFunc(aliases(asked), func(alias string) bool { _, ok := a.Names[alias]; return ok })
}

// splitReference splits a reference like Docker does; a missing tag is "latest".
func splitReference(asked string) (repository, tag string) {
	repository, tag = asked, "latest"
	if i := strings.LastIndexByte(asked, ':'); i > strings.LastIndexByte(asked, '/') {
		repository, tag = asked[:i], asked[i+1:]
	}
	for _, prefix := range []string{"docker.io/", "library/"} {
		repository = strings.TrimPrefix(repository, prefix)
	}
	return repository, tag
}

func (a *Aliases) unknown(asked string) error {
	var there []string
	if all, err := a.Store.List(); err == nil {
		all = slices.DeleteFunc(all, func(img *Image) bool { return Extended(img.Name) })
		for _, img := range all[:min(len(all), 20)] {
			there = append(there, img.Name)
		}
	}
	slices.SortFunc(there, cmp.Compare[string])
	return fault.New(fault.Invalid, "image: this server has no image %q; its operator can import it with 'atoll image import %s'. Images here: %s",
		asked, asked, strings.Join(there, ", "))
}

// plainName makes of text what an image can be called.
func plainName(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			return c
		}
		return '-'
	}, text)
}
