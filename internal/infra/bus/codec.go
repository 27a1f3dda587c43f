package bus

import (
	"bytes"
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// Messages are CBOR (RFC 8949): maps whose keys are the names of fields. A reader
// ignores fields that it does not know and takes those that are missing for zero, so
// that servers and executors of neighbouring versions work together. Code of a
// megabyte costs a tenth of what it does in JSON. testdata has messages of released
// versions, which must stay readable.
var (
	encMode = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden,
		MaxNestedLevels: 16, UTF8: cbor.UTF8DecodeInvalid, // output and names of hosts are what programs make them
	}.DecMode())
)

var errMessage = errors.New("a message on the bus cannot be understood")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// appendMessage appends a value to a message's first bytes.
func appendMessage(head []byte, v any, size int) []byte {
	b := bytes.NewBuffer(append(make([]byte, 0, size+len(head)), head...))
	if err := encMode.NewEncoder(b).Encode(v); err != nil {
		panic(err) // of a type that cannot be encoded
	}
	return b.Bytes()
}

// parseMessage decodes all of b.
func parseMessage(b []byte, to any) error {
	if err := decMode.Unmarshal(b, to); err != nil {
		return errMessage
	}
	return nil
}
