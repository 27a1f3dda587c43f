// Package wire reads the JSON that callers send, strictly, and describes Go types as
// JSON Schema: both by the tags of one struct, so that what is documented is what is
// read.
//
// The tags of a field are json, doc, required, nullable, default, enum, example, format,
// hidden, pattern, and the bounds minimum, maximum, minLength, maxLength and maxItems.
// The decoder enforces types, required and enum; the other bounds are documented here
// and enforced by the domain, in whose words the caller is told.
package wire

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Seconds is a whole number of seconds. A number that does not fit an int64 becomes the
// nearest value, so that it is refused for its size and not for its type.
type Seconds int64

// Millis is a whole number of milliseconds, likewise.
type Millis int64

// UnmarshalJSON accepts integers only.
func (s *Seconds) UnmarshalJSON(b []byte) error { return saturating(s, b) }

// UnmarshalJSON accepts integers only.
func (m *Millis) UnmarshalJSON(b []byte) error { return saturating(m, b) }

func saturating[T ~int64](to *T, b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	*to = T(n) // on ErrRange n is already the nearest value
	return nil
}

// Duration returns the nearest time.Duration.
func (s Seconds) Duration() time.Duration {
	const limit = math.MaxInt64 / Seconds(time.Second)
	return time.Duration(max(min(s, limit), -limit)) * time.Second
}

// Duration returns the nearest time.Duration.
func (m Millis) Duration() time.Duration {
	const limit = math.MaxInt64 / Millis(time.Millisecond)
	return time.Duration(max(min(m, limit), -limit)) * time.Millisecond
}

// Whole is a whole number, also one that is written as 3e4 or 30000.0, as models do.
// Whether it is whole its reader checks.
type Whole float64

// Schema implements huma.SchemaProvider.
func (Whole) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// Text is a string that is not null, for the values of maps and arrays.
type Text string

// UnmarshalJSON accepts strings only.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		return errors.New("not a string")
	}
	s, err := jsontext.AppendUnquote(nil, b)
	*t = Text(s)
	return err
}

// Texts is one string, or an array of them.
type Texts []string

// UnmarshalJSON accepts a string or an array of strings.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var one Text
	if len(b) > 0 && b[0] == '"' {
		err := one.UnmarshalJSON(b)
		*t = Texts{string(one)}
		return err
	}
	var all []Text
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*t = Strings(all)
	return nil
}

// MarshalJSON writes one text as a string.
func (t Texts) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Schema implements huma.SchemaProvider.
func (Texts) Schema(huma.Registry) *huma.Schema {
	one := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{OneOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one}}}
}

// Strings gives a list of Text the domain's type.
func Strings(in []Text) []string {
	out := make([]string, len(in))
	for i, text := range in {
		out[i] = string(text)
	}
	return out
}

// StringMap gives a map of Text the domain's type; an empty one is nil.
func StringMap(in map[string]Text) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

// WholeRunes returns the length of p without a character that is cut off at its end.
func WholeRunes(p []byte) int {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				break
			}
			return i
		}
	}
	return len(p)
}

// field is a field of a struct as JSON has it.
type field struct {
	name string
	reflect.StructField
}

// fieldsOf lists the fields of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			out = append(out, field{name, f})
		}
	}
	return out
}

// choice is a type whose values are few. A field of it needs no tag enum, and an empty tag
// default stands for the first of them.
type choice interface{ Choices() []string }

var choiceType = reflect.TypeFor[choice]()

// choices lists the values that a field of a type can have.
func choices(t reflect.Type) ([]string, bool) {
	if t = plain(t); !t.Implements(choiceType) {
		return nil, false
	}
	return reflect.Zero(t).Interface().(choice).Choices(), true
}

// plain returns the type that a pointer leads to.
func plain(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Clip is the beginning of a text, of at most so many bytes and a sign that it is cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:WholeRunes([]byte(text[:most]))] + "…"
}
