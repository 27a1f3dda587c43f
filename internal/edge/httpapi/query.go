package httpapi

import (
	"github.com/atoll-run/atoll/internal/core/wire"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// parseQuery reads a request's query strictly: only names that are known, each
// of them once. A name that ends in a dot stands for all that begin with it.
func parseQuery(r *http.Request, known ...string) (url.Values, error) {
	return parseQueryWith(r, nil, known...)
}

// parseQueryWith is parseQuery that also knows names whose values are bytes, such
// as the paths of files.
func parseQueryWith(r *http.Request, raw []string, known ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query is not well-formed")
	}
	for name, values := range q {
		isRaw := slices.Contains(raw, name)
		if !isRaw && !slices.ContainsFunc(known, func(k string) bool {
			return name == k || strings.HasSuffix(k, ".") && strings.HasPrefix(name, k)
		}) {
			return nil, invalid("unknown query parameter %s", wire.Quote(name))
		}
		if len(values) != 1 {
			return nil, invalid("query parameter %s must be given once", wire.Quote(name))
		}
		if v := values[0]; !isRaw && !utf8.ValidString(name+v) || strings.ContainsRune(name+v, 0) {
			return nil, invalid("query parameter %s must be UTF-8 without NUL", wire.Quote(strings.ToValidUTF8(name, "\ufffd")))
		}
	}
	return q, nil
}

// queryTime reads a moment, the zero time if there is none.
func queryTime(q url.Values, name string) (time.Time, error) {
	text := q.Get(name)
	if !q.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, invalid("%s must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z", name)
	}
	return t.UTC(), nil
}

// querySpan reads the parameters since and before, of which the first must be
// the earlier.
func querySpan(q url.Values) (since, before time.Time, err error) {
	if since, err = queryTime(q, "since"); err != nil {
		return since, before, err
	}
	if before, err = queryTime(q, "before"); err != nil {
		return since, before, err
	}
	if !since.IsZero() && !before.IsZero() && !since.Before(before) {
		return since, before, invalid("since must be earlier than before")
	}
	return since, before, nil
}

// queryInt reads a number between least and most, def if there is none.
func queryInt(q url.Values, name string, def, least, most int64) (int64, error) {
	if !q.Has(name) {
		return def, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s must be an integer from %d to %d", name, least, most)
	}
	return n, nil
}

// queryBool reads true or false, which it is if there is none.
func queryBool(q url.Values, name string) (bool, error) {
	switch v := q.Get(name); {
	case !q.Has(name), v == "false":
		return false, nil
	case v == "true":
		return true, nil
	}
	return false, invalid("%s must be true or false", name)
}
