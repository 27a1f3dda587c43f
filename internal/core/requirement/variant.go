package requirement

import (
	"slices"
	"strings"
)

// Default is the name of the image that Atoll builds from Debian's packages.
const Default = "default"

// Extras are sets of programs that a variant of the default image has besides the usual ones.
const (
	Browser = "browser" // Chromium
	Office  = "office"  // LibreOffice
)

// Extras lists all extras, sorted.
var Extras = []string{Browser, Office}

const (
	variantMark = "+"
	extraMark   = ","
)

// Variant names the variant of the default image with the given extras, such as
// "default+browser,office". Without extras it is the default image.
func Variant(extras []string) string {
	extras = slices.Compact(slices.Sorted(slices.Values(extras)))
	if len(extras) == 0 {
		return Default
	}
	return Default + variantMark + strings.Join(extras, extraMark)
}

// ParseVariant returns the extras of a variant. ok is false for every other name, also for a
// variant whose extras are unknown, repeated or not sorted: each variant has one name.
func ParseVariant(name string) (extras []string, ok bool) {
	rest, ok := strings.CutPrefix(name, Default+variantMark)
	if !ok {
		return nil, false
	}
	extras = strings.Split(rest, extraMark)
	for i, e := range extras {
		if !slices.Contains(Extras, e) || i > 0 && extras[i-1] >= e {
			return nil, false
		}
	}
	return extras, true
}

// IsVariant reports whether a name is that of a variant of the default image.
func IsVariant(name string) bool {
	_, ok := ParseVariant(name)
	return ok
}

// LikeVariant reports whether a name looks like that of a variant, but may have extras that do
// not exist.
func LikeVariant(name string) bool { return strings.HasPrefix(name, Default+variantMark) }

// Variants lists all variants, those with fewer extras first.
func Variants() (all []string) {
	for set := 1; set < 1<<len(Extras); set++ {
		var extras []string
		for i, e := range Extras {
			if set&(1<<i) != 0 {
				extras = append(extras, e)
			}
		}
		all = append(all, Variant(extras))
	}
	slices.SortStableFunc(all, func(a, b string) int { return strings.Count(a, extraMark) - strings.Count(b, extraMark) })
	return all
}

// VariantCommand is the command that builds a variant on the server.
func VariantCommand(name string) string {
	extras, _ := ParseVariant(name)
	return "atoll image build --with " + strings.Join(extras, extraMark)
}
