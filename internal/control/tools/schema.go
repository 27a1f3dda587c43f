package tools

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// schemaOf describes a struct by its tags: json, doc, default, enum and
// required. Fields are pointers where they may be left out. It is called for the
// tools' own types alone, so what it cannot describe is a programming error.
func schemaOf(t reflect.Type) jsontext.Value {
	return jsontext.Value(appendSchema(nil, t, ""))
}

func appendSchema(dst []byte, t reflect.Type, tag reflect.StructTag) []byte {
	switch t.Kind() {
	case reflect.Pointer:
		return appendSchema(dst, t.Elem(), tag)
	case reflect.Struct:
		if t != moment {
			return appendObject(dst, t)
		}
		dst = append(dst, `{"type":`...)
		dst = appendType(dst, t, tag)
	case reflect.Slice:
		dst = append(dst, `{"type":"array","items":`...)
		dst = appendSchema(dst, t.Elem(), "")
	default:
		dst = append(dst, `{"type":`...)
		dst = appendType(dst, t, tag)
	}
	if enum, ok := tag.Lookup("enum"); ok {
		dst = append(dst, `,"enum":[`...)
		for i, value := range strings.Split(enum, ",") {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, value)
		}
		if nullable(tag) {
			dst = append(dst, ",null"...)
		}
		dst = append(dst, ']')
	}
	if def, ok := tag.Lookup("default"); ok {
		dst = append(dst, `,"default":`...)
		if jsonType(t) == "string" {
			dst = appendString(dst, def)
		} else {
			dst = append(dst, def...)
		}
	}
	if doc, ok := tag.Lookup("doc"); ok {
		dst = append(dst, `,"description":`...)
		dst = appendString(dst, doc)
	}
	return append(dst, '}')
}

func nullable(tag reflect.StructTag) bool { return tag.Get("nullable") == "true" }

func appendType(dst []byte, t reflect.Type, tag reflect.StructTag) []byte {
	if !nullable(tag) {
		return appendString(dst, jsonType(t))
	}
	dst = appendString(append(dst, '['), jsonType(t))
	return append(dst, `,"null"]`...)
}

func appendObject(dst []byte, t reflect.Type) []byte {
	var required []byte
	dst = append(dst, `{"type":"object","properties":{`...)
	for i := range t.NumField() {
		field := t.Field(i)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, nameOf(field))
		dst = append(dst, ':')
		dst = appendSchema(dst, field.Type, field.Tag)
		if field.Tag.Get("required") == "true" {
			if required != nil {
				required = append(required, ',')
			}
			required = appendString(required, nameOf(field))
		}
	}
	dst = append(dst, '}')
	if required != nil {
		dst = append(dst, `,"required":[`...)
		dst = append(append(dst, required...), ']')
	}
	return append(dst, '}')
}

var moment = reflect.TypeFor[time.Time]()

// jsonType names a scalar's type. The contract has one type of number.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64, reflect.Int, reflect.Int64:
		return "number"
	case reflect.Pointer:
		return jsonType(t.Elem())
	}
	if t == moment {
		return "string"
	}
	panic(fmt.Sprintf("tools: no schema for %s", t))
}

// nameOf is what a field is called in JSON.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func appendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic(fmt.Sprintf("tools: %s: %v", strconv.Quote(s), err))
	}
	return out
}
