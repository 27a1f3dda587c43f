package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// parseQuery reads a request's query strictly: parameters that the operation documents,
// each of them once unless it says otherwise, each with a value of its type.
func parseQuery(r *http.Request, params []Param) (url.Values, error) {
	var q url.Values
	if r.URL.RawQuery != "" {
		var err error
		if q, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return nil, Invalid("the query is not well-formed")
		}
	}
	for name, values := range q {
		p := paramOf(params, name)
		if p == nil {
			return nil, Invalid("unknown query parameter %s", wire.Quote(name))
		}
		if len(values) != 1 && !p.Many {
			return nil, Invalid("query parameter %s must be given once", wire.Quote(name))
		}
		for _, value := range values {
			if err := p.check(name, value); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range params {
		if p.In == InQuery && p.Required && !q.Has(p.Name) {
			return nil, Invalid("%s is required: %s", p.Name, p.Doc)
		}
	}
	return q, nil
}

// paramOf returns the query parameter that a name is of, nil if there is none.
func paramOf(params []Param, name string) *Param {
	i := slices.IndexFunc(params, func(p Param) bool {
		return p.In == InQuery && (p.Name == name || strings.HasSuffix(p.Name, ".") && strings.HasPrefix(name, p.Name))
	})
	if i < 0 {
		return nil
	}
	return &params[i]
}

// check refuses a value that is not of the parameter's type. name is as the request has it.
func (p *Param) check(name, value string) error {
	if p.Type != Bytes && !utf8.ValidString(name+value) || strings.ContainsRune(name+value, 0) {
		return Invalid("query parameter %s must be UTF-8 without NUL", wire.Quote(strings.ToValidUTF8(name, "\ufffd")))
	}
	switch p.Type {
	case Text, Bytes:
		if p.Enum != nil && !slices.Contains(p.Enum, value) {
			return Invalid("%s must be one of %s", name, strings.Join(p.Enum, ", "))
		}
		if p.Max > 0 && (int64(utf8.RuneCountInString(value)) > p.Max || strings.ContainsFunc(value, unicode.IsControl)) {
			return Invalid("query parameter %s must be at most %d characters without control characters", wire.Quote(name), p.Max)
		}
		if p.Required && value == "" {
			return Invalid("%s is required: %s", p.Name, p.Doc)
		}
	case Int:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || p.Max > 0 && (n < p.Min || n > p.Max) {
			return Invalid("%s must be an integer from %d to %d", name, p.Min, p.Max)
		}
	case Bool:
		if value != "true" && value != "false" {
			return Invalid("%s must be true or false", name)
		}
	case Time:
		if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
			return Invalid("%s must be %s", name, wire.Expected(timeType))
		}
	}
	return nil
}
