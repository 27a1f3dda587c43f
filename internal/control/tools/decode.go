package tools

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// decode reads a tool's input strictly into a struct of pointers: no name that
// the schema does not have, none twice, every type as it says, what is required
// there. Fields that are left out or null get their defaults. No input is that
// of a call without arguments.
func decode(input []byte, into any) error {
	if !utf8.Valid(input) {
		return invalid("the input must be valid UTF-8")
	}
	trimmed := bytes.TrimLeft(input, " \t\r\n")
	if len(trimmed) == 0 {
		trimmed = []byte("{}")
	}
	if trimmed[0] != '{' && jsontext.Value(trimmed).IsValid() {
		return invalid("the input must be a JSON object")
	}
	v := reflect.ValueOf(into).Elem()
	if err := json.Unmarshal(trimmed, into, json.RejectUnknownMembers(true)); err != nil {
		return notDecoded(err, v.Type())
	}
	return complete(v)
}

// notDecoded says what is wrong with an input.
func notDecoded(err error, t reflect.Type) error {
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		name := s.JSONPointer.LastToken()
		if errors.Is(s.Err, json.ErrUnknownName) {
			return invalid("unknown field %s; there are %s", quoteName(name), strings.Join(namesOf(t), ", "))
		}
		for i := range t.NumField() {
			if f := t.Field(i); nameOf(f) == name {
				return invalid("%s must be a %s", name, jsonType(f.Type))
			}
		}
		return fault.Wrap(fault.Invalid, err, "the input has the wrong shape")
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(s.Err, jsontext.ErrDuplicateName) {
			return invalid("duplicate field %s", quoteName(s.JSONPointer.LastToken()))
		}
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the input is not valid JSON (at byte %d)", s.ByteOffset))
	}
	return fault.Wrap(fault.Invalid, err, "the input is not valid JSON")
}

// complete gives what was left out its default, and checks what the schema says
// of each field.
func complete(v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		field, f := v.Field(i), t.Field(i)
		if field.IsNil() {
			def, ok := f.Tag.Lookup("default")
			switch {
			case f.Tag.Get("required") == "true":
				return invalid("%s is required: a %s", nameOf(f), jsonType(f.Type))
			case !ok, f.Tag.Get("fill") == "false": // the tool itself tells what is given from what is not
				continue
			}
			field.Set(reflect.New(f.Type.Elem()))
			setDefault(field.Elem(), def)
		}
		if text := field.Elem(); text.Kind() == reflect.String && f.Tag.Get("nul") != "true" && strings.ContainsRune(text.String(), 0) {
			return invalid("%s must not contain a NUL character", nameOf(f))
		}
		if f.Tag.Get("empty") == "false" && field.Elem().String() == "" {
			return invalid("%s must not be empty", nameOf(f))
		}
		if enum, ok := f.Tag.Lookup("enum"); ok {
			if err := oneOf(nameOf(f), field.Elem().String(), strings.Split(enum, ",")); err != nil {
				return err
			}
		}
	}
	return nil
}

func setDefault(v reflect.Value, def string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(def)
	case reflect.Bool:
		v.SetBool(def == "true")
	default:
		n, err := strconv.ParseFloat(def, 64)
		if err != nil {
			panic("tools: " + err.Error()) // a tag of ours
		}
		v.SetFloat(n)
	}
}

func oneOf(name, value string, values []string) error {
	for _, known := range values {
		if value == known {
			return nil
		}
	}
	return invalid("%s must be one of %s", name, strings.Join(values, ", "))
}

// integer reads a number that must be an integer between least and most.
func integer(name string, v *float64, least, most int64) (int64, error) {
	if *v != math.Trunc(*v) || *v < float64(least) || *v > float64(most) {
		return 0, invalid("%s must be a whole number from %d to %d", name, least, most)
	}
	return int64(*v), nil
}

func namesOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = nameOf(t.Field(i))
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// quoteName quotes a name from the caller, cut so that it cannot flood the
// message.
func quoteName(name string) string {
	const most = 60
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
