package daemon

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// A pattern may stand for so many others, with {a,b} written out, and these may be so
// long together. Each {a,b} after another doubles their number.
const (
	maxAlternatives = 1000
	maxWrittenOut   = 64 << 10 // bytes
)

// alternative is one of the patterns that a pattern with braces stands for.
type alternative struct {
	base    string   // the folders before the first special character; "" for none
	names   []string // the patterns of the names below them
	folder  bool     // it ended in a slash, so it matches folders alone
	literal bool     // there is no special character: names has one name
}

// parsePattern reads a pattern of glob.
func parsePattern(pattern string) ([]alternative, error) {
	if pattern == "" || strings.IndexByte(pattern, 0) >= 0 {
		return nil, refuse(proto.Invalid, "the pattern is empty or has a NUL in it")
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, refuse(proto.Invalid, "%q is no pattern: a bracket, a brace or a backslash is not followed by what belongs to it", shortened(pattern))
	}
	x := expander{rest: pattern}
	written := x.row(false)
	if x.over {
		return nil, refuse(proto.Invalid, "the pattern %q stands for more than %d patterns, or they are longer than %d bytes together, because each {a,b} after another doubles their number: use fewer braces, * in place of some, or several calls",
			shortened(pattern), maxAlternatives, maxWrittenOut)
	}
	all := make([]alternative, 0, len(written))
	for _, one := range written {
		if one != "" {
			all = append(all, splitPattern(one))
		}
	}
	return all, nil
}

// shortened is the beginning of a pattern, for messages.
func shortened(pattern string) string {
	const most = 100
	if len(pattern) <= most {
		return pattern
	}
	return pattern[:most] + "…"
}

// expander writes out the braces of a valid pattern.
type expander struct {
	rest string
	over bool // they are too many
}

// row writes out what stands before the end, or inside of braces before the comma or
// brace that ends an alternative.
func (x *expander) row(inside bool) []string {
	all := []string{""}
	for x.rest != "" && !x.over && !(inside && (x.rest[0] == '}' || x.rest[0] == ',')) {
		all = x.joined(all, x.part(inside))
	}
	return all
}

// part writes out the braces that come next, or what comes before such.
func (x *expander) part(inside bool) []string {
	if x.rest[0] != '{' {
		n := literalLength(x.rest, inside)
		part := x.rest[:n]
		x.rest = x.rest[n:]
		return []string{part}
	}
	var all []string
	for x.rest != "" && x.rest[0] != '}' && !x.over {
		x.rest = x.rest[1:] // the opening brace, or a comma
		all = append(all, x.row(true)...)
		x.over = x.over || len(all) > maxAlternatives
	}
	x.rest = x.rest[min(1, len(x.rest)):]
	return all
}

// joined is each of some beginnings with each of some ends.
func (x *expander) joined(beginnings, ends []string) []string {
	bytes := 0
	for _, s := range beginnings {
		bytes += len(s) * len(ends)
	}
	for _, s := range ends {
		bytes += len(s) * len(beginnings)
	}
	if len(beginnings)*len(ends) > maxAlternatives || bytes > maxWrittenOut {
		x.over = true
		return nil
	}
	all := make([]string, 0, len(beginnings)*len(ends))
	for _, b := range beginnings {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return all
}

// literalLength is how much of a pattern comes before braces, or inside of such before
// their end or a comma. What is escaped or in brackets is neither.
func literalLength(p string, inside bool) int {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '{':
			return i
		case '}', ',':
			if inside {
				return i
			}
		case '\\':
			i++
		case '[':
			i = bracketEnd(p, i)
		}
	}
	return len(p)
}

// bracketEnd is where the bracket ends that begins at a place.
func bracketEnd(p string, at int) int {
	for at++; at < len(p) && p[at] != ']'; at++ {
		if p[at] == '\\' {
			at++
		}
	}
	return at
}

// splitPattern splits a pattern without braces.
func splitPattern(p string) alternative {
	p = plainSlashes(p)
	special, slash := len(p), -1
	for i := 0; i < len(p) && special == len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '/':
			slash = i
		case '*', '?', '[':
			special = i
		}
	}
	a := alternative{literal: special == len(p)}
	rest := p[slash+1:]
	if slash >= 0 {
		a.base = cmp.Or(strings.TrimRight(unescape(p[:slash]), "/"), "/")
	}
	if a.base == "." {
		a.base = ""
	}
	if a.literal {
		a.names, a.folder = []string{unescape(rest)}, rest == ""
		return a
	}
	a.folder = strings.HasSuffix(rest, "/")
	a.names = slices.DeleteFunc(strings.Split(rest, "/"), func(name string) bool { return name == "" })
	return a
}

// plainSlashes is a pattern whose slashes are not escaped.
func plainSlashes(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) {
			if i++; p[i] != '/' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

// unescape is what a pattern without special characters stands for.
func unescape(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) {
			i++
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

// byBase groups alternatives by their base.
func byBase(all []alternative) iter.Seq2[string, []alternative] {
	groups := map[string][]alternative{}
	for _, a := range all {
		groups[a.base] = append(groups[a.base], a)
	}
	return func(yield func(string, []alternative) bool) {
		for base, group := range groups {
			if !yield(base, group) {
				return
			}
		}
	}
}
