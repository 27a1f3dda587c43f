package contexts

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/redact"
)

// redactText covers secrets in a string.
func redactText(set *redact.Set, text string) string { return string(set.Bytes([]byte(text))) }

// redactJSON covers secrets in the strings, names and numbers of a JSON value, each
// as a program would print it.
func redactJSON(set *redact.Set, value jsontext.Value) jsontext.Value {
	if len(value) == 0 {
		return nil
	}
	var v any
	lenient := json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	keep := json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		raw, err := d.ReadValue()
		*into = number(raw.Clone())
		return err
	}))
	if err := json.Unmarshal(value, &v, lenient, keep); err != nil {
		return jsontext.Value("null")
	}
	out, err := json.Marshal(redactValue(set, v), lenient, json.Deterministic(true))
	if err != nil {
		return jsontext.Value("null")
	}
	return out
}

// number is a number as it was written.
type number jsontext.Value

// MarshalJSONTo writes the number.
func (n number) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(jsontext.Value(n)) }

func redactValue(set *redact.Set, v any) any {
	switch v := v.(type) {
	case string:
		return redactText(set, v)
	case number:
		if covered := redactText(set, string(v)); covered != string(v) {
			return covered
		}
		return v
	case []any:
		for i := range v {
			v[i] = redactValue(set, v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[redactText(set, name)] = redactValue(set, x)
		}
		return out
	}
	return v
}
