package address

import (
	"regexp"
	"strings"
)

// label is a part of a host name.
var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// number is a last label that some resolvers read as an IPv4 address.
var number = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)

// Hostname returns a host name in the form it is compared in, or "" if it is
// none: lower-case ASCII without a last dot, and nothing that is an address in
// whatever notation.
func Hostname(s string) string {
	s = strings.TrimSuffix(strings.ToLower(s), ".")
	if len(s) > 253 {
		return ""
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return ""
		}
	}
	if number.MatchString(labels[len(labels)-1]) {
		return ""
	}
	return s
}
