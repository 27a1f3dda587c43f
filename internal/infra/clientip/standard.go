package clientip

import (
	"net/http"
	"net/netip"
	"strings"
)

// standard reads the Forwarded headers. A line that is not well-formed tells
// nothing, nor do those before it: a client that opens a quote in its own part
// would otherwise swallow what a proxy appended.
func standard(h http.Header) (hops []netip.Addr) {
	for _, line := range h.Values("Forwarded") {
		elements, ok := elements(line)
		if !ok {
			hops = append(hops, netip.Addr{})
			continue
		}
		hops = append(hops, elements...)
	}
	return hops
}

// elements reads one header: pairs of name and value with semicolons between
// them, in elements with commas between them.
func elements(s string) (hops []netip.Addr, ok bool) {
	var addr netip.Addr
	for {
		name, rest, found := strings.Cut(s, "=")
		if !found { // the end, or an element without pairs
			return append(hops, addr), strings.Trim(s, " \t,;") == "" && !strings.Contains(s, ",")
		}
		name = strings.Trim(name, " \t")
		if !token(name) {
			return nil, false
		}
		value, after, ok := value(rest)
		if !ok {
			return nil, false
		}
		if strings.EqualFold(name, "for") {
			addr = address(value)
		}
		after = strings.TrimLeft(after, " \t")
		switch {
		case after == "":
			return append(hops, addr), true
		case after[0] == ',':
			hops, addr = append(hops, addr), netip.Addr{}
		case after[0] != ';':
			return nil, false
		}
		s = after[1:]
	}
}

// value reads a token or a quoted string, and returns what follows it.
func value(s string) (v, after string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, " \t,;\"")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// token reports whether s can be a name.
func token(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t,;\"\\[]()")
}
