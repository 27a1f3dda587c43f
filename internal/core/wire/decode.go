package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Decoder reads JSON objects into structs, strictly: the text is valid UTF-8, no name is
// unknown or given twice, every value has its type, what is required is there, and
// nothing comes after the object. A field that is null counts as left out.
type Decoder struct {
	// Noun is what messages call the text.
	Noun string
	// Arguments reads the input of a tool: no text at all is an object without fields,
	// fields that are left out get their defaults (unless tagged fill:"false"), and
	// strings hold no NUL character (unless tagged nul:"true") and are not empty where
	// tagged empty:"false". Every field of the struct is a pointer.
	Arguments bool
}

// Body reads the bodies of HTTP requests.
var Body = Decoder{Noun: "the request body"}

// Arguments reads the inputs of tools.
var Arguments = Decoder{Noun: "the input", Arguments: true}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Decode reads text into a pointer to a struct. It fails with an Invalid fault that names
// the field.
func (d Decoder) Decode(text []byte, into any) error {
	if !utf8.Valid(text) {
		return invalid("%s must be valid UTF-8", d.Noun)
	}
	if _, err := Weigh(d.Noun, text); err != nil {
		return err
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 && d.Arguments {
		text = []byte("{}")
	}
	if len(text) == 0 {
		return invalid("%s is empty: send a JSON object", d.Noun)
	}
	if text[0] != '{' && jsontext.Value(text).IsValid() {
		return invalid("%s must be a JSON object", d.Noun)
	}
	if err := json.Unmarshal(text, into, json.RejectUnknownMembers(true)); err != nil {
		return d.refused(err, plain(reflect.TypeOf(into)))
	}
	return d.complete(reflect.ValueOf(into).Elem(), "")
}

// refused says what is wrong with a text that could not be read into a t.
func (d Decoder) refused(err error, t reflect.Type) error {
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(s.Err, json.ErrUnknownName) {
			return invalid("unknown field %s; known fields are %s", Quote(s.JSONPointer.LastToken()), names(plain(s.GoType)))
		}
		if name, at := locate(t, s.JSONPointer); name != "" {
			return invalid("%s must be %s", name, Expected(at))
		}
		return fault.Wrap(fault.Invalid, err, d.Noun+" has the wrong shape")
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		switch {
		case errors.Is(s.Err, jsontext.ErrDuplicateName):
			return invalid("duplicate field %s", Quote(s.JSONPointer.LastToken()))
		case errors.Is(s.Err, io.ErrUnexpectedEOF):
			return invalid("%s is not valid JSON: it ends in the middle of a value", d.Noun)
		}
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("%s is not valid JSON (at byte %d)", d.Noun, s.ByteOffset))
	}
	return fault.Wrap(fault.Invalid, err, d.Noun+" is not valid JSON")
}

// locate finds the field that a pointer leads to, and its type: name is its path in dots.
// It stops at maps and arrays, whose names are the caller's and whose type says what
// their items must be.
func locate(t reflect.Type, at jsontext.Pointer) (name string, _ reflect.Type) {
	for token := range at.Tokens() {
		if t.Kind() != reflect.Struct {
			break
		}
		found := false
		for _, f := range fieldsOf(t) {
			if f.name == token {
				name, t, found = strings.TrimPrefix(name+"."+token, "."), plain(f.Type), true
				break
			}
		}
		if !found {
			return "", nil
		}
	}
	return name, t
}

// complete checks what the tags say of each field, and gives what was left out its
// default where that is asked for. path begins the names of the fields.
func (d Decoder) complete(v reflect.Value, path string) error {
	for _, f := range fieldsOf(v.Type()) {
		f.name = path + f.name
		value := v.FieldByIndex(f.Index)
		required := f.Tag.Get("required") == "true"
		if value.Kind() == reflect.Pointer {
			if value.IsNil() && required {
				return invalid("%s is required: %s", f.name, Expected(f.Type))
			}
			if value.IsNil() && d.Arguments {
				fill(value, f.Tag)
			}
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		switch value.Kind() {
		case reflect.String:
			if err := d.checkText(f, value.String()); err != nil {
				return err
			}
		case reflect.Struct:
			if _, isText := value.Interface().(interface{ MarshalText() ([]byte, error) }); !isText {
				if err := d.complete(value, f.name+"."); err != nil {
					return err
				}
			}
		case reflect.Slice:
			if d.Arguments || plain(value.Type().Elem()).Kind() != reflect.Struct {
				continue // tools check their lists themselves
			}
			for i := range value.Len() {
				if err := d.element(value.Index(i), fmt.Sprintf("%s[%d]", f.name, i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// element checks an object of a list.
func (d Decoder) element(v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return invalid("%s must be an object", path)
		}
		v = v.Elem()
	}
	if _, isText := v.Interface().(interface{ MarshalText() ([]byte, error) }); isText {
		return nil
	}
	return d.complete(v, path+".")
}

func (d Decoder) checkText(f field, text string) error {
	switch {
	case d.Arguments && f.Tag.Get("nul") != "true" && strings.ContainsRune(text, 0):
		return invalid("%s must not contain a NUL character", f.name)
	case d.Arguments && f.Tag.Get("empty") == "false" && text == "":
		return invalid("%s must not be empty", f.name)
	}
	values, ok := choices(f.Type)
	if enum, tagged := f.Tag.Lookup("enum"); tagged {
		values, ok = strings.Split(enum, ","), true
	}
	if !ok || text == "" && f.Type.Kind() == reflect.String { // which may have been left out
		return nil
	}
	for _, known := range values {
		if text == known {
			return nil
		}
	}
	return invalid("%s must be one of %s", f.name, strings.Join(values, ", "))
}

// fill gives a field that was left out its default.
func fill(v reflect.Value, tag reflect.StructTag) {
	def, ok := tag.Lookup("default")
	if !ok || tag.Get("fill") == "false" { // the tool itself tells what is given from what is not
		return
	}
	if values, ok := choices(v.Type()); ok && def == "" {
		def = values[0]
	}
	v.Set(reflect.New(v.Type().Elem()))
	switch v = v.Elem(); v.Kind() {
	case reflect.String:
		v.SetString(def)
	case reflect.Bool:
		v.SetBool(def == "true")
	default:
		n, err := strconv.ParseFloat(def, 64)
		if err != nil {
			panic("wire: " + err.Error()) // a tag of ours
		}
		v.SetFloat(n)
	}
}

// Expected says in words what a value of a type is in JSON.
func Expected(t reflect.Type) string {
	t = plain(t)
	switch t {
	case reflect.TypeFor[Seconds]():
		return "an integer, in seconds"
	case reflect.TypeFor[Millis]():
		return "an integer, in milliseconds"
	case reflect.TypeFor[Whole]():
		return "an integer"
	case reflect.TypeFor[Texts]():
		return "a string, or an array of strings"
	case moment:
		return "a time as in RFC 3339, such as 2026-01-31T12:00:00Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("an integer from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array of " + plural(t.Elem())
	case reflect.Map:
		return "an object whose values are " + plural(t.Elem())
	case reflect.Struct:
		return "an object with " + names(t)
	}
	return "of another type"
}

func plural(t reflect.Type) string {
	switch t = plain(t); t.Kind() {
	case reflect.String:
		return "strings"
	case reflect.Slice:
		return "arrays of " + plural(t.Elem())
	case reflect.Struct, reflect.Map:
		return "objects"
	case reflect.Float32, reflect.Float64:
		return "numbers"
	case reflect.Interface:
		return "of any type"
	}
	return "integers" + strings.TrimPrefix(Expected(t), "an integer")
}

// names lists the fields that callers can give.
func names(t reflect.Type) string {
	var out []string
	if t != nil && t.Kind() == reflect.Struct {
		for _, f := range fieldsOf(t) {
			if f.Tag.Get("hidden") != "true" {
				out = append(out, f.name)
			}
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// Quote quotes a name that a caller chose, cut to 60 bytes so that it does not flood the
// message.
func Quote(name string) string {
	const limit = 60
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
