package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var moment = reflect.TypeFor[time.Time]()

// Schemas makes the schemas of Go types, for a document in which those of structs stand
// once, under their names.
type Schemas struct {
	registry huma.Registry
	mended   map[reflect.Type]bool
}

// NewSchemas returns an empty collection. prefix begins each reference to one of them.
func NewSchemas(prefix string) *Schemas {
	r := huma.NewMapRegistry(prefix, huma.DefaultSchemaNamer)
	r.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[any]())
	return &Schemas{r, map[reflect.Type]bool{}}
}

// Of returns the schema of a type; that of a struct is a reference.
func (s *Schemas) Of(t reflect.Type) *huma.Schema {
	made := s.registry.Schema(t, true, "")
	s.mend(t)
	mendArrays(made)
	return made
}

// Registry has the schemas that were referred to.
func (s *Schemas) Registry() huma.Registry { return s.registry }

// mend corrects what the generator says of null, in the schema of t and of all that it
// refers to. Null may be: an optional field of a request (a pointer, whatever it leads
// to), and a field of an answer that is a pointer without omitzero. A field with the tag
// required cannot be null, unless it has nullable too; an array cannot either.
func (s *Schemas) mend(t reflect.Type) {
	switch t = plain(t); t.Kind() {
	case reflect.Slice, reflect.Map:
		s.mend(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if t == moment || s.mended[t] {
		return
	}
	s.mended[t] = true
	made := s.registry.SchemaFromRef(s.registry.Schema(t, true, "").Ref)
	for _, f := range fieldsOf(t) {
		s.mend(f.Type)
		p := made.Properties[f.name]
		if p == nil {
			continue
		}
		mendArrays(p)
		if values, ok := choices(f.Type); ok {
			p.Enum = nil
			for _, v := range values {
				p.Enum = append(p.Enum, v)
			}
			if _, ok := f.Tag.Lookup("default"); ok {
				p.Default = values[0]
			}
		}
		null := f.Tag.Get("nullable")
		switch pointer := f.Type.Kind() == reflect.Pointer; {
		case null != "" && p.Ref == "":
			p.Nullable = null == "true"
		case f.Tag.Get("required") == "true":
			p.Nullable = false
		case p.Type == huma.TypeArray:
			p.Nullable = pointer
		case p.Ref != "" && pointer && !strings.Contains(f.Tag.Get("json"), "omitzero"):
			made.Properties[f.name] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
		if p.Nullable && len(p.Enum) > 0 {
			p.Enum = append(p.Enum, nil)
		}
	}
}

// mendArrays says of arrays within a schema that they are never null.
func mendArrays(s *huma.Schema) {
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.Items != nil {
		mendArrays(s.Items)
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		mendArrays(values)
	}
}

// ForModel returns the schema of a struct as models are given it: whole, with its fields
// in their order, with one type of number, and without null unless the tag nullable says
// so. A field is required if its tag says so.
func ForModel(t reflect.Type) jsontext.Value {
	return must(modelObject(NewSchemas("#/"), t))
}

func modelObject(schemas *Schemas, t reflect.Type) object {
	properties, required := object{}, []string(nil)
	made := schemas.registry.SchemaFromRef(schemas.Of(t).Ref)
	for _, f := range fieldsOf(t) {
		properties = append(properties, member{f.name, modelSchema(schemas, f.Type, made.Properties[f.name], f.Tag)})
		if f.Tag.Get("required") == "true" {
			required = append(required, f.name)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}}
	if required != nil {
		out = append(out, member{"required", required})
	}
	return out
}

func modelSchema(schemas *Schemas, t reflect.Type, s *huma.Schema, tag reflect.StructTag) object {
	switch t = plain(t); {
	case t.Kind() == reflect.Struct && t != moment:
		return modelObject(schemas, t)
	case t.Kind() == reflect.Slice:
		return describe(object{{"type", "array"}, {"items", modelSchema(schemas, t.Elem(), s.Items, "")}}, s)
	}
	name := s.Type
	if name == huma.TypeInteger {
		name = huma.TypeNumber
	}
	out := object{{"type", name}}
	null := tag.Get("nullable") == "true"
	if null {
		out[0].value = []string{name, "null"}
	}
	if len(s.Enum) > 0 {
		values := slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return v == nil && !null })
		out = append(out, member{"enum", values})
	}
	if s.Default != nil {
		out = append(out, member{"default", s.Default})
	}
	return describe(out, s)
}

func describe(out object, s *huma.Schema) object {
	if s.Description != "" {
		out = append(out, member{"description", s.Description})
	}
	return out
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSONTo implements json.MarshalerTo.
func (o object) MarshalJSONTo(to *jsontext.Encoder) error {
	if err := to.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := to.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(to, m.value); err != nil {
			return err
		}
	}
	return to.WriteToken(jsontext.EndObject)
}

func must(o object) jsontext.Value {
	text, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err)) // made of our own types: a programming error
	}
	return text
}
