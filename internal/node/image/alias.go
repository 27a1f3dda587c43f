package image

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
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
	// with packages; nil where there are none.
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

// Resolve returns the name of an image of the store: of what the operator's table
// says, or of that very name, or the default image where it has the language that
// is asked for in that version or a later one, or what Provide has imported for
// it. Nothing is fetched.
func (a *Aliases) Resolve(asked string) (string, error) {
	if !reference.MatchString(asked) || unclean(asked) {
		return "", fault.New(fault.Invalid, "image: %.80q is no image's name; want one such as \"default\" or \"node:22\"", asked)
	}
	repository, tag := splitReference(asked)
	for _, alias := range aliases(asked) {
		if name, ok := a.Names[alias]; ok {
			if _, err := a.Store.Get(name); err != nil {
				return "", fault.Wrap(fault.Invalid, err, "image: "+strconv.Quote(asked)+" is the image "+strconv.Quote(name)+" in this server's image_aliases, which it does not have; have it imported with 'atoll image import --name "+name+" ...'")
			}
			return name, nil
		}
	}
	if CheckName(asked) == nil && !Extended(asked) {
		if _, err := a.Store.Get(asked); err == nil {
			return asked, nil
		} else if fault.KindOf(err) != fault.NotFound {
			return "", err
		}
	}
	if a.stands(repository, tag) {
		return a.Default, nil
	}
	if name, ok := pulledName(asked); ok && a.Pull != nil {
		if _, err := a.Store.Get(name); err == nil {
			return name, nil
		} else if fault.KindOf(err) != fault.NotFound {
			return "", err
		}
	}
	return "", a.unknown(asked, repository, tag)
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

// stands reports whether the default image will do for a language's image.
func (a *Aliases) stands(repository, tag string) bool {
	l := language.ByRepository(repository)
	if !language.Known(l.Name) {
		return false
	}
	img, err := a.Store.Get(a.Default)
	if err != nil {
		return false
	}
	in, ok := img.Interpreter(l.Name)
	if !ok {
		return false
	}
	version, _, _ := strings.Cut(tag, "-") // such as 3.12-slim
	if version == "latest" || version == "lts" || version == "slim" {
		return true
	}
	want, ok := components(version)
	have, known := components(in.Version)
	if !ok || !known || slices.Compare(have, want) < 0 {
		return false
	}
	return l.Major == 0 || have[0] == want[0] // Python 3 does not run Python 2
}

// components are the numbers of a version.
func components(version string) ([]int, bool) {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

func (a *Aliases) unknown(asked, repository, tag string) error {
	name := plainName(repository[strings.LastIndexByte(repository, '/')+1:] + "-" + tag)
	var there []string
	if all, err := a.Store.List(); err == nil {
		all = slices.DeleteFunc(all, func(img *Image) bool { return Extended(img.Name) })
		for _, img := range all[:min(len(all), 20)] {
			there = append(there, img.Name)
		}
	}
	slices.SortFunc(there, cmp.Compare[string])
	return fault.New(fault.Invalid, "image: this server has no image %q; its operator can import it with 'atoll image import --name %s %s' and set image_aliases to {%q: %q}. There are: %s",
		asked, name, asked, asked, name, strings.Join(there, ", "))
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
