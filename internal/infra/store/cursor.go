package store

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// place is where a page of a list ended: everything after it is older, or as
// old with a smaller id.
type place struct {
	at int64  // microseconds
	id string // breaks ties
}

const (
	sumSize   = 16
	maxCursor = 512 // characters
)

// encodeCursor makes a token of p that is good for one list only; a list is a
// kind of thing and a tenant.
func encodeCursor(box Sealer, list string, p place) string {
	data := binary.BigEndian.AppendUint64(nil, uint64(p.at))
	data = append(data, p.id...)
	return base64.RawURLEncoding.EncodeToString(append(data, box.Sum(data, "cursor/"+list)...))
}

// decodeCursor reads a token again, and refuses any that was not made for this
// list.
func decodeCursor(box Sealer, list, token string) (place, error) {
	refusal := fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
	if len(token) > maxCursor || strings.ContainsAny(token, "\r\n") { // base64 would read over these
		return place{}, refusal
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < 8+sumSize {
		return place{}, refusal
	}
	data, sum := data[:len(data)-sumSize], data[len(data)-sumSize:]
	if !box.Check(data, "cursor/"+list, sum) {
		return place{}, refusal
	}
	return place{at: int64(binary.BigEndian.Uint64(data)), id: string(data[8:])}, nil
}
