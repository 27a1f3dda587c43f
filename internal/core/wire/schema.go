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

// Schemas generates JSON schemas for Go types. A document contains each struct's schema once, under
// its name.
type Schemas struct {
	registry huma.Registry
	mended   map[reflect.Type]bool
}

// NewSchemas returns an empty collection. prefix starts every reference to a schema.
func NewSchemas(prefix string) *Schemas {
	r := huma.NewMapRegistry(prefix, huma.DefaultSchemaNamer)
	r.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[any]())
	return &Schemas{r, map[reflect.Type]bool{}}
}

// Of returns the schema of a type; for a struct it returns a reference.
func (s *Schemas) Of(t reflect.Type) *huma.Schema {
	made := s.registry.Schema(t, true, "")
	s.fixNull(t)
	mendArrays(made)
	return made
}

// Registry returns the registry of the referenced schemas.
func (s *Schemas) Registry() huma.Registry { return s.registry }

// fixNull corrects null in the schema of t and of everything that it references. Null is valid for an
// optional field of a request (a pointer to anything) and for an answer's pointer field without
// omitzero. A field with the tag required is not nullable unless it also has the tag nullable; an
// array never is.
func (s *Schemas) fixNull(t reflect.Type) {
	switch t = plain(t); t.Kind() {
	case reflect.Slice, reflect.Map:
		s.fixNull(t.Elem())
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
		s.fixNull(f.Type)
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
		case plain(f.Type) == reflect.TypeFor[Whole]():
			p.Nullable = pointer
		case p.Ref != "" && pointer && !strings.Contains(f.Tag.Get("json"), "omitzero"):
			made.Properties[f.name] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
		if p.Nullable && len(p.Enum) > 0 {
			p.Enum = append(p.Enum, nil)
		}
	}
}

// mendArrays marks the arrays within a schema as never null.
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

// Reader selects the variant of a schema that ForModel writes.
type Reader uint8

const (
	// Clients read outputs, which may gain fields in the future.
	Clients Reader = iota
	// Models write inputs, which allow no other fields.
	Models
	// StrictModels write inputs that contain every field, with null for an omitted one, as OpenAI's
	// strict mode requires.
	StrictModels
)

// ForModel returns the schema of a struct in the form that models receive: without references, with
// fields in order, and without null unless the tag nullable allows it. A field is required if its
// tag says so.
func ForModel(t reflect.Type, by Reader) jsontext.Value {
	return must(modelObject(NewSchemas("#/"), t, by))
}

func modelObject(schemas *Schemas, t reflect.Type, by Reader) object {
	properties, required := object{}, []string(nil)
	if by == StrictModels {
		required = []string{}
	}
	made := schemas.registry.SchemaFromRef(schemas.Of(t).Ref)
	for _, f := range fieldsOf(t) {
		needed := f.Tag.Get("required") == "true"
		null := f.Tag.Get("nullable") == "true" || by == StrictModels && !needed
		properties = append(properties, member{f.name, modelSchema(schemas, f.Type, made.Properties[f.name], null, by)})
		if needed || by == StrictModels {
			required = append(required, f.name)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}}
	if required != nil {
		out = append(out, member{"required", required})
	}
	if by != Clients {
		out = append(out, member{"additionalProperties", false})
	}
	return out
}

func modelSchema(schemas *Schemas, t reflect.Type, s *huma.Schema, null bool, by Reader) object {
	switch t = plain(t); {
	case t.Kind() == reflect.Struct && t != moment:
		return modelObject(schemas, t, by)
	case t.Kind() == reflect.Slice:
		return describe(object{{"type", "array"}, {"items", modelSchema(schemas, t.Elem(), s.Items, false, by)}}, s.Description)
	}
	out := object{{"type", s.Type}}
	if null {
		out[0].value = []string{s.Type, "null"}
	}
	if len(s.Enum) > 0 {
		values := slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return v == nil })
		if null {
			values = append(values, nil)
		}
		out = append(out, member{"enum", values})
	}
	switch {
	case s.Default == nil:
	case by == StrictModels: // which has no defaults
		return describe(out, strings.TrimSpace(fmt.Sprintf("%s null for %v.", s.Description, reflect.Indirect(reflect.ValueOf(s.Default)))))
	default:
		out = append(out, member{"default", s.Default})
	}
	return describe(out, s.Description)
}

func describe(out object, description string) object {
	if description != "" {
		out = append(out, member{"description", description})
	}
	return out
}

// object is a JSON object with ordered members.
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
