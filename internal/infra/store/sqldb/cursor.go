package sqldb

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Place is the end of a page of a list. Later entries are older, or have the same time and a smaller
// id.
type Place struct {
	At int64  // microseconds
	ID string // breaks ties
}

const (
	sumSize   = 16
	maxCursor = 512 // characters
)

// EncodeCursor returns a token of p that DecodeCursor accepts for the same list only. The name of a
// list contains the kind of its entries and their tenant.
func EncodeCursor(box Sealer, list string, p Place) string {
	data := binary.BigEndian.AppendUint64(nil, uint64(p.At))
	data = append(data, p.ID...)
	return base64.RawURLEncoding.EncodeToString(append(data, box.Sum(data, "cursor/"+list)...))
}

// DecodeCursor returns the Place in a token. The error for tokens that EncodeCursor has not made for
// the list is a fault.Invalid.
func DecodeCursor(box Sealer, list, token string) (Place, error) {
	refusal := fault.New(fault.Invalid, "page must be the next_page of an earlier answer")
	if len(token) > maxCursor || strings.ContainsAny(token, "\r\n") { // base64 would read over these
		return Place{}, refusal
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < 8+sumSize {
		return Place{}, refusal
	}
	data, sum := data[:len(data)-sumSize], data[len(data)-sumSize:]
	if !box.Check(data, "cursor/"+list, sum) {
		return Place{}, refusal
	}
	return Place{At: int64(binary.BigEndian.Uint64(data)), ID: string(data[8:])}, nil
}
