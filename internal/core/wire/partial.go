package wire

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Partial reads a string member of a JSON object while the object's text comes in pieces,
// cut anywhere. It is for showing what comes: whether the text is JSON at all is for its
// reader to say once it is whole.
type Partial struct {
	name string

	state  partialState
	depth  int  // of objects and lists that are open
	key    bool // the next string at depth 1 is a member's name
	member bool // the last name was the one that is looked for

	reading stringKind
	escape  string // an escape that is not whole, from its backslash on
	high    rune   // a surrogate that waits for its other half; 0 for none
	rest    string // the beginning of a character whose bytes have not all come
	text    strings.Builder
	out     strings.Builder
}

type partialState uint8

const (
	between partialState = iota // strings
	within                      // a string
	over                        // the member's end was read, or what comes is no JSON
)

type stringKind uint8

const (
	otherString stringKind = iota
	nameString
	memberString
)

// maxMemberName bounds the bytes that are kept of a member's name.
const maxMemberName = 1024

// NewPartial returns a Partial for a member of the object.
func NewPartial(name string) *Partial { return &Partial{name: name} }

// Write takes the next piece, and returns what it adds to the member's text.
func (p *Partial) Write(piece string) string {
	p.out.Reset()
	piece, p.rest = p.rest+piece, ""
	for piece != "" && p.state != over {
		if p.state == between {
			p.outside(piece[0])
			piece = piece[1:]
			continue
		}
		if !utf8.FullRuneInString(piece) {
			p.rest = piece
			break
		}
		c, size := utf8.DecodeRuneInString(piece)
		piece = piece[size:]
		p.inside(c)
	}
	return p.out.String()
}

// outside takes a byte that is in no string.
func (p *Partial) outside(b byte) {
	switch b {
	case '{', '[':
		if p.depth == 0 && b == '[' {
			p.state = over
			return
		}
		p.depth++
		p.key = p.depth == 1
	case '}', ']':
		if p.depth--; p.depth <= 0 {
			p.state = over
		}
	case ',':
		if p.depth == 1 {
			p.key, p.member = true, false
		}
	case ':':
		if p.depth == 1 {
			p.key = false
		}
	case '"':
		p.state, p.reading = within, otherString
		switch {
		case p.depth == 0:
			p.state = over
		case p.depth == 1 && p.key:
			p.reading = nameString
			p.text.Reset()
		case p.depth == 1 && p.member:
			p.reading = memberString
		}
	}
}

// inside takes a character of a string.
func (p *Partial) inside(c rune) {
	switch {
	case p.escape != "":
		p.escaped(c)
	case c == '\\':
		p.escape = `\`
	case c == '"':
		p.lone()
		p.close()
	default:
		p.lone()
		p.say(c)
	}
}

// close ends a string.
func (p *Partial) close() {
	p.state = between
	switch p.reading {
	case nameString:
		p.member = p.text.String() == p.name
	case memberString:
		p.state = over
	}
}

var escapes = map[rune]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped takes a character of an escape.
func (p *Partial) escaped(c rune) {
	if p.escape == `\` && c != 'u' {
		is, ok := escapes[c]
		if !ok {
			p.state = over
			return
		}
		p.escape = ""
		p.lone()
		p.say(is)
		return
	}
	if p.escape += string(c); len(p.escape) < len(`\u0000`) {
		return
	}
	unit, err := strconv.ParseUint(p.escape[len(`\u`):], 16, 16)
	if err != nil {
		p.state = over
		return
	}
	p.escape = ""
	switch is := rune(unit); {
	case p.high != 0 && is >= 0xDC00 && is < 0xE000:
		is, p.high = utf16.DecodeRune(p.high, is), 0
		p.say(is)
	case is >= 0xD800 && is < 0xDC00:
		p.lone()
		p.high = is
	default:
		p.lone()
		p.say(is) // half of a character alone becomes U+FFFD
	}
}

// lone is for half a character whose other half does not come.
func (p *Partial) lone() {
	if p.high != 0 {
		p.high = 0
		p.say(utf8.RuneError)
	}
}

func (p *Partial) say(c rune) {
	switch p.reading {
	case memberString:
		p.out.WriteRune(c)
	case nameString:
		if p.text.Len() < maxMemberName {
			p.text.WriteRune(c)
		}
	}
}
