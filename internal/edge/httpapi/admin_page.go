package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// paged returns the page of a list that the query asks for. A cursor holds the
// id of the last item that was given and its place, which is where the list
// goes on if that item is gone by then.
func paged[T, W any](c *adminCall, all []T, id func(T) string, wire func(T) W) (Page[W], error) {
	return pageOf(c.query, all, id, wire)
}

func pageOf[T, W any](query url.Values, all []T, id func(T) string, wire func(T) W) (Page[W], error) {
	limit, err := queryInt(query, "limit", 50, 1, 100)
	if err != nil {
		return Page[W]{}, err
	}
	start := 0
	if cursor := query.Get("page"); cursor != "" {
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
	for _, v := range all[start:min(start+int(limit), len(all))] {
		out.Data = append(out.Data, wire(v))
	}
	if end := start + len(out.Data); end < len(all) {
		next := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d:%s", end-1, id(all[end-1])))
		out.NextPage = &next
	}
	return out, nil
}

func readCursor(cursor string) (place int, id string, err error) {
	refused := invalid("page must be the next_page of an earlier answer")
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, "", refused
	}
	number, id, ok := strings.Cut(string(raw), ":")
	if place, err = strconv.Atoi(number); !ok || err != nil || place < 0 {
		return 0, "", refused
	}
	return place, id, nil
}
