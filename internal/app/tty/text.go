package tty

import (
	"strings"
	"unicode"
)

// Obeyed reports whether terminals obey a character instead of showing it: control characters, and
// characters that change the direction of the surrounding text.
func Obeyed(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }

// Printable replaces the characters of text that terminals obey, except line breaks and tabs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Obeyed(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}
