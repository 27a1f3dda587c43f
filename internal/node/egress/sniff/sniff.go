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

	maxMethod = 24
	maxBlank  = 64
)

// preface begins HTTP/2 without TLS.
const preface = "PRI * HTTP/2.0\r\n"

// Classify tells what a client speaks from its first bytes.
//
// Whatever a lenient server might take for HTTP is HTTP here: blank lines before
// the request, unknown methods, tabs for spaces.
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
	line := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(b)-len(line) > maxBlank:
		return Other
	case len(line) == 0:
		return More
	}
	method := bytes.IndexAny(line, " \t\r\n")
	word := line
	if method >= 0 {
		word = line[:method]
	}
	if len(word) > maxMethod || bytes.ContainsFunc(word, notToken) {
		return Other
	}
	if method < 0 {
		return More
	}
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		if len(b) >= MaxHello {
			return Other
		}
		return More
	}
	if strings.HasPrefix(string(b), preface) {
		return HTTP2
	}
	if request(string(line[:end])) {
		return HTTP
	}
	return Other
}

// notToken reports whether a character has no place in a method.
func notToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
}

// request reports whether a line is a request of some version of HTTP, the
// first included, which had no version.
func request(line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 {
		return false
	}
	if strings.HasPrefix(strings.ToUpper(words[len(words)-1]), "HTTP/") {
		return true
	}
	target := strings.ToLower(words[1])
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, "http:") || strings.HasPrefix(target, "https:")
}
