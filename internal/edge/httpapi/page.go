package httpapi

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Page is a part of a list.
type Page[T any] struct {
	Data     []T     `json:"data"`
	NextPage *string `json:"next_page" doc:"Give it as page to get the next part; null at the end."`
}

// PageParams are the parameters of a list: its pages have def items, or at most limit.
func PageParams(def, limit int64) []Param {
	return []Param{
		{Name: "limit", Type: Int, Min: 1, Max: limit, Default: def, Doc: fmt.Sprintf("Items of a page at most; %d if not given.", def)},
		{Name: "page", Doc: "The next_page of an earlier answer."},
	}
}

// Cursor returns the parameter page as the domain takes it, "" for the first page.
func (c *Call) Cursor() (string, error) {
	if c.Has("page") && c.Text("page") == "" {
		return "", errCursor()
	}
	return c.Text("page"), nil
}

func errCursor() error { return Invalid("page must be the next_page of an earlier answer") }

// PageOf returns the page that the query asks for of a list that is there as a whole. A
// cursor holds the id of the last item that was given and its place, from which the list
// continues if that item no longer exists.
func PageOf[T, W any](c *Call, all []T, id func(T) string, wire func(T) W) (Page[W], error) {
	limit, start := int(c.Int("limit")), 0
	if cursor := c.Text("page"); cursor != "" {
		place, last, err := readCursor(cursor)
		if err != nil {
			return Page[W]{}, err
		}
		start = min(place, len(all))
		if i := slices.IndexFunc(all, func(v T) bool { return id(v) == last }); i >= 0 {
			start = i + 1
		}
	}
	out := Page[W]{Data: []W{}}
	for _, v := range all[start:min(start+limit, len(all))] {
		out.Data = append(out.Data, wire(v))
	}
	if end := start + len(out.Data); end < len(all) {
		next := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d:%s", end-1, id(all[end-1])))
		out.NextPage = &next
	}
	return out, nil
}

func readCursor(cursor string) (place int, id string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, "", errCursor()
	}
	number, id, ok := strings.Cut(string(raw), ":")
	if place, err = strconv.Atoi(number); !ok || err != nil || place < 0 {
		return 0, "", errCursor()
	}
	return place, id, nil
}

// OrNull returns a string that is null in JSON if it is empty.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Each turns a list into its wire form.
func Each[T, W any](all []T, wire func(T) W) []W {
	out := make([]W, len(all))
	for i, v := range all {
		out[i] = wire(v)
	}
	return out
}

// Shown returns a function that turns the result of a service into its wire form.
func Shown[T, W any](wire func(*T) W) func(*T, error) (W, error) {
	return func(v *T, err error) (out W, _ error) {
		if err != nil {
			return out, err
		}
		return wire(v), nil
	}
}

// ShownPage returns a function that turns a page that a service returned into its wire form.
func ShownPage[T, W any](wire func(*T) W) func([]T, string, error) (Page[W], error) {
	return func(page []T, next string, err error) (Page[W], error) {
		return Page[W]{Data: Each(page, func(v T) W { return wire(&v) }), NextPage: OrNull(next)}, err
	}
}

// After is the part of a list behind an entry: at most limit entries, and whether more follow. of is
// what a refusal calls the list.
func After[T any](all []T, after string, limit int, id func(*T) string, of string) (page []T, more bool, err error) {
	if after != "" {
		at := slices.IndexFunc(all, func(one T) bool { return id(&one) == after })
		if at < 0 {
			return nil, false, Invalid("after names no %s", of)
		}
		all = all[at+1:]
	}
	if len(all) > limit {
		return all[:limit], true, nil
	}
	return all, false, nil
}
