package main

import (
	"bytes"
	"encoding/json"
)

// document has the parts of an OpenAPI document that the reference renders.
type document struct {
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[map[string]*operation]
	Components struct {
		Schemas ordered[*schema]
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []struct {
		Name, In, Description string
		Required              bool
		Schema                *schema
	}
	RequestBody *struct {
		Content ordered[content]
	}
	Responses ordered[struct {
		Description string
		Content     ordered[content]
	}]
}

type content struct {
	Schema  *schema
	Example json.RawMessage
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Format, Description  string
	Properties           ordered[*schema]
	AdditionalProperties json.RawMessage
	Items                *schema
	OneOf, AnyOf         []*schema
	Required             []string
	Enum                 []any
	Default              any
	Minimum, Maximum     *json.Number
	MinLength, MaxLength *json.Number
	MaxItems             *json.Number
	Pattern              string
}

// types is a schema's type, which OpenAPI writes as a string or a list of strings.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*t = make(types, 1)
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// ordered is a JSON object that keeps the order of its members, so that pages list fields as the
// document does.
type ordered[T any] struct {
	keys   []string
	values map[string]T
}

func (o *ordered[T]) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &o.values); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		o.keys = append(o.keys, key.(string)) //nolint:forcetypeassert // members of objects have names
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}
