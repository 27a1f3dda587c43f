package image

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image/source"
)

// versionMatch compares the version of an image's interpreter with the version that a reference
// requests.
type versionMatch int

const (
	noVersion    versionMatch = iota // no interpreter, an older version, or another major version
	laterVersion                     // the image can stand in, with a Warning
	sameVersion
)

// languageImage is the language image that a reference requests, such as python:3.10-slim.
type languageImage struct {
	language *language.Language
	version  string // such as "3.10"; "" for any
	numbers  []int
	system   string // such as "alpine"; "" for any
}

// systems lists tags of language images that are not based on Debian.
var systems = []string{"alpine", "windowsservercore", "nanoserver"}

// parseLanguageImage parses a reference. ok is false if the reference requests no language or no
// comparable version.
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

// match compares an interpreter with the requested one.
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

// onSystem adjusts the match of a Debian-based image to the requested system.
func (w languageImage) onSystem(m versionMatch) versionMatch {
	if w.system != "" {
		return laterVersion
	}
	return m
}

// components splits a version into its numbers.
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

// defaultVersion compares the default image with the requested one.
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

// importedBy reports whether an image was imported by a canonical registry reference.
func (i *Image) importedBy(reference string) bool {
	if i.Recipe != "" || Extended(i.Name) {
		return false
	}
	of, err := source.Canonical(strings.TrimPrefix(i.Source, "docker://"))
	return err == nil && of == reference
}

// Warning warns that the named image lacks the version that the caller requested, and explains how
// to get it; "" if the image has that version.
func (a *Aliases) Warning(asked, name string) string {
	want, ok := parseLanguageImage(asked)
	if !ok {
		return ""
	}
	img, err := a.Store.Get(name)
	if err != nil {
		return "" // just deleted; the next step reports that
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
	return fmt.Sprintf("%s. To get the requested version, ask the operator to run 'atoll image import %s' on the server, then run 'atoll sandbox restart' or create the sandbox again", runs, asked)
}

// called describes the image to a caller.
func (i *Image) called() string {
	if Extended(i.Name) {
		return "the environment's image"
	}
	return "this server's image " + strconv.Quote(i.Name)
}

// Exact rejects an image whose version differs from the requested one, unless the operator's table
// accepts it. It is for callers that cannot show a Warning.
func (a *Aliases) Exact(asked, name string) error {
	if a.aliased(asked) {
		return nil
	}
	if warning := a.Warning(asked, name); warning != "" {
		return fault.New(fault.Invalid, "image: %s; or ask the operator to set image_aliases to {%q: %q} to accept it", warning, asked, name)
	}
	return nil
}

// NotHere returns the error for an unknown image name, and suggests the stored image that the
// caller may have meant. Environments and commands use it, because they need the exact name.
// missing is the store's error.
func (a *Aliases) NotHere(asked string, missing error) error {
	found, _, err := a.find(asked)
	switch reference := strings.ContainsAny(asked, ":/"); {
	case err != nil && requirement.LikeVariant(asked):
		return err
	case err == nil && a.Warning(asked, found) == "":
		return fault.New(fault.Invalid, "image %q is called %q here: use that name", asked, found)
	case reference && err == nil:
		return fault.New(fault.Invalid, "image %q is not on this server; the image %q has %s. Run 'atoll image import %s' on the server and use the name that it prints", asked, found, a.languages(found), asked)
	case reference && reachable(asked):
		return fault.New(fault.Invalid, "image %q is not on this server: run 'atoll image import %s' there and use the name that it prints; 'atoll image list' lists the images", asked, asked)
	case fault.KindOf(missing) == fault.Invalid:
		return missing
	}
	return fault.Wrap(fault.Invalid, missing, fmt.Sprintf("image %q is not on this server: import it with 'atoll image import'; 'atoll image list' lists the images", asked))
}

// reachable reports whether a name is a registry reference.
func reachable(asked string) bool {
	_, err := source.Canonical(asked)
	return err == nil && reference.MatchString(asked)
}

// languages summarizes the interpreters of an image.
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
