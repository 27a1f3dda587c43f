package contexts

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// redactText covers secrets in a string.
func redactText(set *redact.Set, text string) string { return string(set.Bytes([]byte(text))) }

// maxFields bounds the fields of the objects in a JSON value. Its elements are not bounded: they
// are covered one by one, while the names of an object are held to find those that are there twice.
const maxFields = 100_000

// null stands for a value that cannot be read, or has too many fields.
var null = jsontext.Value("null")

// redactJSON covers secrets in the strings, names and numbers of a JSON value, each as a program
// would print it. It does not decode the value into memory, because that would take many times its
// text, which a program chooses. Of fields with one name the first stays.
func redactJSON(set *redact.Set, value jsontext.Value) jsontext.Value {
	if len(value) == 0 {
		return nil
	}
	in := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	var covered bytes.Buffer
	out := jsontext.NewEncoder(&covered, jsontext.AllowInvalidUTF8(true))
	for fields := 0; ; {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return jsontext.Value(bytes.TrimSpace(covered.Bytes()))
		}
		if err != nil {
			return null
		}
		name := isName(in, token)
		if name {
			fields++
		}
		err = out.WriteToken(cover(set, token))
		if name && errors.Is(err, jsontext.ErrDuplicateName) {
			err = in.SkipValue()
		}
		if err != nil || fields > maxFields {
			return null
		}
	}
}

// isName reports whether the token that was read last is the name of a field.
func isName(in *jsontext.Decoder, last jsontext.Token) bool {
	kind, length := in.StackIndex(in.StackDepth())
	return last.Kind() == '"' && kind == '{' && length%2 == 1
}

// cover covers a string, or a number, which is a string then.
func cover(set *redact.Set, token jsontext.Token) jsontext.Token {
	switch token.Kind() {
	case '"':
		return jsontext.String(redactText(set, token.String()))
	case '0':
		if text := token.String(); redactText(set, text) != text {
			return jsontext.String(redactText(set, text))
		}
	}
	return token
}
