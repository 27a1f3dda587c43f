package storage

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// MaxPath limits a prefix or an entry of sub_paths, in characters. maxSegment limits a name within
// it, in bytes, as file systems do.
const (
	MaxPath    = 512
	maxSegment = 255
)

// Path is a directory of a connection: names joined by slashes, without a leading or trailing
// slash. "" is the root. Use ParsePath for untrusted text.
type Path string

// ParsePath parses a path from a caller or an administrator. It accepts only paths that every
// program reads the same way, because Atoll does not decode, fold or clean them later.
func ParsePath(field, text string) (Path, error) {
	if utf8.RuneCountInString(text) > MaxPath {
		return "", invalid("%s must be at most %d characters", field, MaxPath)
	}
	if strings.HasPrefix(text, "/") {
		return "", invalid("%s must not begin with a slash: it is relative to the connection, such as reports/2026", field)
	}
	text = strings.TrimSuffix(text, "/")
	if text == "" {
		return "", nil
	}
	for segment := range strings.SplitSeq(text, "/") {
		if err := checkSegment(field, segment); err != nil {
			return "", err
		}
	}
	return Path(text), nil
}

// likeSeparators resemble a slash, a backslash or a dot, and compatibility folding does not change
// them.
const likeSeparators = "\u2044\u2215\u2216\u29f5\u29f6\u29f8\u29f9\u2571\u2572\u338d\ua4f8\u0701\u0702\u3002"

func checkSegment(field, s string) error {
	switch {
	case s == "":
		return invalid("%s must not have two slashes in a row: write one", field)
	case s == "." || s == "..":
		return invalid("%s must not contain . or .. as a name: write the path without them", field)
	case strings.Trim(s, ".") == "":
		return invalid("%s must not contain a name of dots alone", field)
	case len(s) > maxSegment:
		return invalid("%s must not contain a name of more than %d bytes", field, maxSegment)
	case !utf8.ValidString(s):
		return invalid("%s must be valid UTF-8", field)
	case strings.Contains(s, "%"):
		return invalid("%s must not contain %%: the path is not decoded", field)
	case strings.Contains(s, `\`):
		return invalid(`%s must not contain a backslash: names are separated by /`, field)
	case strings.TrimFunc(s, unicode.IsSpace) != s:
		return invalid("%s must not contain a name that begins or ends with a space", field)
	case strings.ContainsFunc(s, unseen):
		return invalid("%s must not contain control characters, or ones that cannot be seen", field)
	case !norm.NFC.IsNormalString(s):
		return invalid("%s must be in Unicode's composed form (NFC): otherwise two spellings of a name look alike", field)
	case strings.ContainsAny(s, likeSeparators) || disguised(s):
		return invalid("%s must not contain characters that look like a slash, backslash, dot or percent sign: write the plain ones", field)
	}
	return nil
}

// unseen reports whether a character is invisible or invalid: a control, a format character such as
// a zero-width space, or a noncharacter.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs, unicode.Variation_Selector) ||
		r == utf8.RuneError || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef ||
		r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u034f'
}

// disguised reports whether compatibility folding, which some programs apply, would create
// separators, dots or percent signs.
func disguised(s string) bool {
	folded := norm.NFKC.String(s)
	for _, c := range []string{"/", `\`, ".", "%", "\x00"} {
		if strings.Count(folded, c) != strings.Count(s, c) {
			return true
		}
	}
	return false
}

// Within reports whether p is outer or below it, by whole names: "reports-old" is not within
// "reports".
func (p Path) Within(outer Path) bool {
	return outer == "" || p == outer || strings.HasPrefix(string(p), string(outer)+"/")
}

// Join appends a relative path to p.
func (p Path) Join(inner Path) Path {
	switch {
	case p == "":
		return inner
	case inner == "":
		return p
	}
	return p + "/" + inner
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// quote quotes a caller's text for an error, truncated so that it cannot flood the message.
func quote(text string) string {
	const most = 60
	if r := []rune(text[:min(len(text), 4*most)]); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}
