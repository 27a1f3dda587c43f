package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minLine is the length from which a line of a secret with several is a secret
// itself. Programs print such secrets indented, and with other line ends.
const minLine = 16

// core is the part of a secret that is looked for: without the white space
// around it, which programs strip.
func core(secret string) string { return strings.TrimSpace(secret) }

// form is a way in which a secret is looked for. One that wraps is also found
// when line ends were put into it.
type form struct {
	text  string
	wraps bool
}

// forms returns the ways in which a secret is looked for.
func forms(secret string) (all []form) {
	s := core(secret)
	seen := map[string]bool{}
	add := func(wraps bool, texts ...string) {
		for _, text := range texts {
			if !seen[text] {
				seen[text] = true
				all = append(all, form{text, wraps})
			}
		}
	}
	add(false, s)
	for _, text := range append(base64Forms(s), hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s)))) {
		add(true, text)
		// A line may break within the first characters, before line ends are passed over.
		if rest := text[minWrapped-1:]; len(rest) >= minRest {
			add(true, rest)
		}
	}
	plain := unescaped
	if len(s) > manyForms {
		plain = plain[:2]
	}
	for _, p := range plain {
		f := percent(s, p)
		plus := strings.ReplaceAll(f, "%20", "+")
		add(false, f, lowerEscapes(f), plus, lowerEscapes(plus))
	}
	for _, e := range stringEscapes {
		add(false, e.escape(s))
	}
	add(false, inSingleQuotes.Replace(s), inDoubleQuotes.Replace(s), inPythonShell.Replace(s))
	add(false, html.EscapeString(s))
	for _, e := range htmlEscapes {
		add(false, e.Replace(s))
	}
	for _, l := range pythonLiterals {
		add(false, l.escape(s))
	}
	if strings.Contains(s, "\n") {
		for line := range strings.Lines(s) {
			if line = core(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				add(false, line)
			}
		}
	}
	return all
}

// manyForms is the length up to which a secret is looked for in every kind of
// percent encoding. Longer ones are not what stands in addresses.
const manyForms = 512

// How shells write values in quotes.
var (
	inSingleQuotes = strings.NewReplacer("'", `'\''`)
	inDoubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
)

// inPythonShell is how Python's shlex.quote writes values.
var inPythonShell = strings.NewReplacer("'", `'"'"'`)

// htmlEscapes are those of HTML and XML that Go does not write: Python's html.escape,
// with quotes and without, those of JavaScript's libraries, and XML's own names.
var htmlEscapes = []*strings.Replacer{
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;"),
}

// minRest is the least length of the rest of a form that is looked for without the form's
// beginning. A shorter one would be found by chance in other data.
const minRest = 8

// base64Forms returns what a secret becomes in base64, whatever stands before
// and after it: it may begin at any of three places within a group, and only
// characters made of its own bits alone are the same every time.
func base64Forms(s string) (all []string) {
	for lead := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:lead] + s))
		text = text[(lead*8+5)/6 : (lead+len(s))*8/6]
		all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
	}
	return all
}

// unescaped lists what the common encoders leave as it is beside letters and
// digits: Go and RFC 3986, Python's quote, HTML forms, encodeURIComponent,
// encodeURI, a path segment in Go, and one that leaves nothing.
var unescaped = []string{"-_.~", "-_.~/", "*-._", "-_.!~*'()", "-_.!~*'();,/?:@&=+$#", "-_.~$&+=:@", ""}

func percent(s, plain string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; alnum[c] && plain != "" || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// lowerEscapes writes the digits of escapes small.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// Escaped returns a text as it is, and as it stands in the string literals of JSON and of
// programming languages.
func Escaped(text string) []string {
	all := []string{text}
	for _, e := range stringEscapes {
		if escaped := e.escape(text); !slices.Contains(all, escaped) {
			all = append(all, escaped)
		}
	}
	return all
}

// stringEscape is how a kind of string literal is written.
type stringEscape struct {
	quote, slash, html, ascii bool // whether it escapes ", /, <>& and all but ASCII
}

// stringEscapes are those of JSON as JavaScript and Rust write it, as Python
// does, as Go does, as PHP does, and of literals in single quotes.
var stringEscapes = []stringEscape{{quote: true}, {quote: true, ascii: true}, {quote: true, html: true}, {quote: true, slash: true, ascii: true}, {}}

func (e stringEscape) escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\', r == '"' && e.quote, r == '/' && e.slash:
			b.WriteByte('\\')
			b.WriteString(s[i : i+n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ', e.html && (r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'), r == 0x7f && e.ascii, r > 0x7f && r <= 0xffff && e.ascii && n > 1:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r > 0xffff && e.ascii:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// pythonLiteral is how Python's repr writes a value, without the quotes around it.
type pythonLiteral struct {
	quote bool // whether ' is escaped: it is where the whole text has both kinds of quotes
	ascii bool // whether all but ASCII is escaped, as by ascii
	bytes bool // whether the value is bytes, and not text
}

var pythonLiterals = []pythonLiteral{
	{}, {quote: true}, {ascii: true}, {quote: true, ascii: true}, {bytes: true}, {quote: true, bytes: true},
}

func (l pythonLiteral) escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if !l.bytes {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '\\', r == '\'' && l.quote:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r >= ' ' && r < 0x7f:
			b.WriteByte(s[i])
		case r == utf8.RuneError && n == 1: // such a byte is a surrogate in Python's text
			fmt.Fprintf(&b, `\udc%02x`, s[i])
		case !l.bytes && !l.ascii && unicode.IsPrint(r):
			b.WriteString(s[i : i+n])
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}
