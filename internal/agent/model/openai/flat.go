package openai

import (
	"bytes"
	"unicode/utf8"
)

// flatText reads an event that adds text: an object whose values are strings, small
// numbers, true, false, null and empty lists, without anything escaped but in its text. All
// others, broken ones too, are for package json: ok is false. delta is JSON.
func flatText(b []byte) (kind string, index int, delta []byte, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte("{"))
	for ok {
		var name, value []byte
		name, b, ok = cutString(b)
		if !ok || escaped(name) || len(b) < 2 || b[0] != ':' {
			return "", 0, nil, false
		}
		b = bytes.TrimLeft(b[1:], " ")
		value, b, ok = cutValue(b)
		if !ok {
			return "", 0, nil, false
		}
		switch string(name) {
		case `"type"`:
			if value[0] != '"' || escaped(value) {
				return "", 0, nil, false
			}
			kind = string(value[1 : len(value)-1])
		case `"delta"`:
			if value[0] != '"' {
				return "", 0, nil, false
			}
			delta = value
		case `"output_index"`:
			if index, ok = number(value); !ok {
				return "", 0, nil, false
			}
		case `"item"`, `"response"`:
			return "", 0, nil, false
		default:
			if value[0] == '"' && escaped(value) || folds(name) {
				return "", 0, nil, false
			}
		}
		if len(b) == 1 && b[0] == '}' {
			return kind, index, delta, delta != nil
		}
		b, ok = bytes.CutPrefix(b, []byte(","))
		b = bytes.TrimLeft(b, " ")
	}
	return "", 0, nil, false
}

// folds reports whether package json would take name for one of a field that is read.
func folds(name []byte) bool {
	for _, field := range []string{`"type"`, `"delta"`, `"output_index"`, `"item"`, `"response"`} {
		if bytes.EqualFold(name, []byte(field)) {
			return true
		}
	}
	return false
}

func escaped(s []byte) bool { return bytes.IndexByte(s, '\\') >= 0 }

// cutString cuts off a JSON string, with its quotes.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			i++
		case c < ' ':
			return nil, nil, false
		case c == '"':
			return b[:i+1], b[i+1:], utf8.Valid(b[:i+1])
		}
	}
	return nil, nil, false
}

func cutValue(b []byte) (value, rest []byte, ok bool) {
	if len(b) > 0 && b[0] == '"' {
		return cutString(b)
	}
	for _, word := range []string{"[]", "null", "true", "false"} {
		if rest, ok := bytes.CutPrefix(b, []byte(word)); ok {
			return b[:len(word)], rest, true
		}
	}
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	_, ok = number(b[:n])
	return b[:n], b[n:], ok
}

// number reads a whole number of at most 9 digits.
func number(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(b) == 1 || len(b) > 1 && len(b) < 10 && b[0] != '0'
}
