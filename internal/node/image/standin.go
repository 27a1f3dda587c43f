package image

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// versionMatch says how the version of an image's interpreter compares with the one that a
// reference asks for.
type versionMatch int

const (
	noVersion    versionMatch = iota // no interpreter, an older version, or another major version
	laterVersion                     // it can stand in, and Warning says so
	sameVersion
)

// languageImage is the image of a language that a reference asks for, such as python:3.10-slim.
type languageImage struct {
	language *language.Language
	version  string // such as "3.10"; "" for any
	numbers  []int
	system   string // such as "alpine"; "" for any
}

// systems are tags of the images of languages that are not made of Debian.
var systems = []string{"alpine", "windowsservercore", "nanoserver"}

// parseLanguageImage reads a reference. ok is false for one that asks for no language, or
// for no version that can be compared.
func parseLanguageImage(asked string) (want languageImage, ok bool) {
	repository, tag := splitReference(asked)
	want.language = language.ByRepository(repository)
	if !language.Known(want.language.Name) {
		return want, false
	}
	version, variant, _ := strings.Cut(tag, "-") // such as 3.12-slim
	for _, system := range systems {
		if strings.HasPrefix(variant, system) {
			want.system = system
		}
	}
	if version == "latest" || version == "lts" || version == "slim" {
		return want, true
	}
	want.version = version
	want.numbers, ok = components(version)
	return want, ok
}

// match compares an interpreter with the one that is asked for.
func (w languageImage) match(in Interpreter) versionMatch {
	have, known := components(in.Version)
	switch {
	case w.version == "":
		return w.onSystem(sameVersion)
	case !known || slices.Compare(have, w.numbers) < 0 || w.language.Major != 0 && have[0] != w.numbers[0]: // Python 3 does not run Python 2
		return noVersion
	case len(have) >= len(w.numbers) && slices.Equal(have[:len(w.numbers)], w.numbers):
		return w.onSystem(sameVersion)
	}
	return laterVersion
}

// onSystem is a match of an image that is made of Debian.
func (w languageImage) onSystem(m versionMatch) versionMatch {
	if w.system != "" {
		return laterVersion
	}
	return m
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

// defaultVersion says how the default image compares with what is asked for.
func (a *Aliases) defaultVersion(asked string) versionMatch {
	want, ok := parseLanguageImage(asked)
	if !ok {
		return noVersion
	}
	img, err := a.Store.Get(a.Default)
	if err != nil {
		return noVersion
	}
	in, ok := img.Interpreter(want.language.Name)
	if !ok {
		return noVersion
	}
	return want.match(in)
}

// importedBy reports whether an image was imported by a registry's reference, which is whole.
func (i *Image) importedBy(reference string) bool {
	if i.Recipe != "" || Extended(i.Name) {
		return false
	}
	of, err := source.Canonical(strings.TrimPrefix(i.Source, "docker://"))
	return err == nil && of == reference
}

// Warning says that the image of a name does not have the version that a caller asked for, and
// how to get that; "" if it does.
func (a *Aliases) Warning(asked, name string) string {
	want, ok := parseLanguageImage(asked)
	if !ok {
		return ""
	}
	img, err := a.Store.Get(name)
	if err != nil {
		return "" // it was deleted a moment ago, which the next step finds
	}
	if reference, err := source.Canonical(asked); err == nil && img.importedBy(reference) {
		return ""
	}
	title := want.language.Title
	in, has := img.Interpreter(want.language.Name)
	runs := fmt.Sprintf("%q runs %s", asked, img.called())
	switch {
	case !has:
		runs += ", which has no " + title
	case want.match(in) == sameVersion:
		return ""
	default:
		runs += fmt.Sprintf(" with %s %s", title, in.Version)
		if want.system != "" {
			runs += " on another system than " + want.system
		}
	}
	return fmt.Sprintf("%s. To get what was asked for, have the operator run 'atoll image import %s' on the server, then 'atoll sandbox restart' or make the sandbox anew", runs, asked)
}

// called is the image's name for a caller.
func (i *Image) called() string {
	if Extended(i.Name) {
		return "the environment's image"
	}
	return "this server's image " + strconv.Quote(i.Name)
}

// Exact refuses an image of another version than a caller asked for, unless the operator's
// table says that it is meant. It is for callers that cannot be told a Warning.
func (a *Aliases) Exact(asked, name string) error {
	if a.aliased(asked) {
		return nil
	}
	if warning := a.Warning(asked, name); warning != "" {
		return fault.New(fault.Invalid, "image: %s; or have the operator set image_aliases to {%q: %q} to accept it", warning, asked, name)
	}
	return nil
}

// NotHere says which image of the store a caller may have meant with a name that is none: for
// environments and commands, which want the name itself. missing is what the store said.
func (a *Aliases) NotHere(asked string, missing error) error {
	found, _, err := a.find(asked)
	switch reference := strings.ContainsAny(asked, ":/"); {
	case err == nil && a.Warning(asked, found) == "":
		return fault.New(fault.Invalid, "image %q is called %q here: use that name", asked, found)
	case reference && err == nil:
		return fault.New(fault.Invalid, "image %q is not here; the image %q has %s. Run 'atoll image import %s' on the server, and use the name that it prints", asked, found, a.languages(found), asked)
	case reference && reachable(asked):
		return fault.New(fault.Invalid, "image %q is not here: run 'atoll image import %s' on the server, and use the name that it prints; 'atoll image list' shows the images that there are", asked, asked)
	case fault.KindOf(missing) == fault.Invalid:
		return missing
	}
	return fault.Wrap(fault.Invalid, missing, fmt.Sprintf("image %q is not here: import it with 'atoll image import'; 'atoll image list' shows the images that there are", asked))
}

// reachable reports whether a name is a registry's reference.
func reachable(asked string) bool {
	_, err := source.Canonical(asked)
	return err == nil && reference.MatchString(asked)
}

// languages are the interpreters of an image in a few words.
func (a *Aliases) languages(name string) string {
	img, err := a.Store.Get(name)
	if err != nil || len(img.Interpreters) == 0 {
		return "no interpreter"
	}
	var out []string
	for _, in := range img.Interpreters {
		out = append(out, language.Get(in.Language).Title+" "+in.Version)
	}
	return strings.Join(out, ", ")
}
