// Package sniff reads from a connection's first bytes which protocol it speaks
// and, where that is TLS, which host it names. The bytes are hostile.
package sniff

import (
	"bytes"
	"strings"
)

// Kind is what a client speaks.
type Kind int

const (
	More  Kind = iota // not to be told from so few bytes
	TLS               // begins with a handshake
	HTTP              // begins with a request line; or with HTTP/2's preface
	HTTP2             // begins with HTTP/2's preface
	Other
)

const (
	// MaxHello is how many bytes are enough to tell anything that is told here.
	MaxHello = 64 << 10
)

// preface begins HTTP/2 without TLS.
const preface = "PRI * HTTP/2.0\r\n"

// Classify tells what a client speaks from its first bytes.
//
// Whatever a lenient server might take for HTTP is HTTP here: blank lines before
// the request, unknown and long methods, other space than that of ASCII.
func Classify(b []byte) Kind {
	if len(b) == 0 {
		return More
	}
	if b[0] == recordHandshake {
		if len(b) > 1 && b[1] != 3 {
			return Other
		}
		if len(b) < 3 {
			return More
		}
		return TLS
	}
	b = b[:min(len(b), MaxHello)]
	line := bytes.TrimLeft(blanked(b), " \n")
	word := line
	if end := bytes.IndexAny(line, " \n"); end >= 0 {
		word = line[:end]
	}
	if bytes.ContainsFunc(word, notToken) {
		return Other
	}
	end := bytes.IndexByte(line, '\n')
	switch {
	case end >= 0 && bytes.HasPrefix(b, []byte(preface)):
		return HTTP2
	case end >= 0 && request(line[:end]), end < 0 && len(b) == MaxHello:
		return HTTP
	case end >= 0:
		return Other
	}
	return More
}

// blanked returns a copy of b with a blank in place of each byte but a newline
// that is space to a lenient server: to C's isspace, Go's strings.Fields, or
// Python's str.split of Latin-1.
func blanked(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		if c != '\n' && (c >= '\t' && c <= '\r' || c >= 0x1c && c <= ' ' || c == 0x85 || c == 0xa0) {
			b[i] = ' '
		}
	}
	return b
}

// notToken reports whether a character has no place in a method.
func notToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
}

// request reports whether a line is a request of some version of HTTP, the
// first included, which had no version.
func request(line []byte) bool {
	words := bytes.Fields(line)
	if len(words) < 2 {
		return false
	}
	for _, w := range words[1:] {
		if hasPrefix(w, "HTTP/") {
			return true
		}
	}
	return hasPrefix(words[1], "/") || hasPrefix(words[1], "http:") || hasPrefix(words[1], "https:")
}

// hasPrefix is bytes.HasPrefix for letters of either case.
func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}
