package wire_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/wire"
)

type part struct {
	Name string `json:"name" required:"true" enum:"a,b"`
}

type answer struct {
	OK    bool           `json:"ok" required:"true"`
	Count int64          `json:"count" required:"true" doc:"How many."`
	Error *string        `json:"error" required:"true" nullable:"true" enum:"A,B"`
	At    *time.Time     `json:"at" required:"true" nullable:"true"`
	Parts []part         `json:"parts" required:"true"`
	Limit *float64       `json:"limit,omitzero" default:"30" minimum:"1"`
	Most  *wire.Whole    `json:"most,omitzero" default:"30" minimum:"1"`
	Names *[]string      `json:"names,omitzero"`
	Head  *part          `json:"head"`
	Tail  *part          `json:"tail,omitzero"`
	Any   jsontext.Value `json:"any"`
}

func TestForModel(t *testing.T) {
	type known struct {
		OK    bool        `json:"ok" required:"true"`
		Count int64       `json:"count" required:"true" doc:"How many."`
		Error *string     `json:"error" required:"true" nullable:"true" enum:"A,B"`
		At    *time.Time  `json:"at" required:"true" nullable:"true"`
		Parts []part      `json:"parts" required:"true"`
		Rate  *float64    `json:"rate,omitzero" minimum:"1"`
		Limit *wire.Whole `json:"limit,omitzero" default:"30" doc:"Of parts."`
		Kind  *string     `json:"kind,omitzero" enum:"C,D" default:"C"`
	}
	const (
		begin = `{"type":"object","properties":{` +
			`"ok":{"type":"boolean"},"count":{"type":"integer","description":"How many."},` +
			`"error":{"type":["string","null"],"enum":["A","B",null]},"at":{"type":["string","null"]},` +
			`"parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string","enum":["a","b"]}},"required":["name"]`
		lax      = `"rate":{"type":"number"},"limit":{"type":"integer","default":30,"description":"Of parts."},"kind":{"type":"string","enum":["C","D"],"default":"C"}`
		required = `},"required":["ok","count","error","at","parts"`
		closed   = `,"additionalProperties":false`
	)
	for by, want := range map[wire.Reader]string{
		wire.Clients: begin + `}},` + lax + required + `]}`,
		wire.Models:  begin + closed + `}},` + lax + required + `]` + closed + `}`,
		wire.StrictModels: begin + closed + `}},"rate":{"type":["number","null"]},"limit":{"type":["integer","null"],"description":"Of parts. null for 30."},` +
			`"kind":{"type":["string","null"],"enum":["C","D",null],"description":"null for C."}` + required + `,"rate","limit","kind"]` + closed + `}`,
	} {
		if got := string(wire.ForModel(reflect.TypeFor[known](), by)); got != want {
			t.Errorf("%d: got  %s\nwant %s", by, got, want)
		}
	}
}

func TestSchemas(t *testing.T) {
	s := wire.NewSchemas("#/x/")
	if ref := s.Of(reflect.TypeFor[answer]()).Ref; ref != "#/x/Answer" {
		t.Fatalf("got %s", ref)
	}
	s.Of(reflect.TypeFor[[]answer]()) // again changes nothing
	text, err := json.Marshal(s.Registry().Map()["Answer"].Properties)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ok": `{"type":"boolean"}`, "count": `{"type":"integer","format":"int64","description":"How many."}`,
		"error": `{"type":["string","null"],"enum":["A","B",null]}`,
		"at":    `{"type":["string","null"],"format":"date-time"}`,
		"parts": `{"type":"array","items":{"$ref":"#/x/Part"}}`,
		"limit": `{"type":["number","null"],"format":"double","default":30,"minimum":1}`,
		"most":  `{"type":["integer","null"],"format":"int64","default":30,"minimum":1}`,
		"names": `{"type":["array","null"],"items":{"type":"string"}}`,
		"head":  `{"anyOf":[{"$ref":"#/x/Part"},{"type":"null"}]}`,
		"tail":  `{"$ref":"#/x/Part"}`, "any": `{}`,
	} {
		var w any
		if err := json.Unmarshal([]byte(want), &w); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[name], w) {
			t.Errorf("%s is %v, want %v", name, got[name], w)
		}
	}
}

type color string

func (color) Choices() []string { return []string{"red", "green"} }

// A field whose type has few values says so by its type.
func TestChoices(t *testing.T) {
	type paint struct {
		Inside  *color `json:"inside,omitzero" default:""`
		Outside *color `json:"outside" required:"true"`
	}
	s := wire.NewSchemas("#/")
	s.Of(reflect.TypeFor[paint]())
	p := s.Registry().Map()["Paint"].Properties
	if p["inside"].Default != "red" || p["outside"].Default != nil || len(p["outside"].Enum) != 2 || p["inside"].Enum[1] != "green" {
		t.Errorf("%+v %+v", p["inside"], p["outside"])
	}
	const model = `{"type":"object","properties":{"inside":{"type":"string","enum":["red","green"],"default":"red"},` +
		`"outside":{"type":"string","enum":["red","green"]}},"required":["outside"]}`
	if got := string(wire.ForModel(reflect.TypeFor[paint](), wire.Clients)); got != model {
		t.Errorf("got  %s\nwant %s", got, model)
	}
	var got paint
	if err := wire.Arguments.Decode([]byte(`{"outside":"green"}`), &got); err != nil || *got.Inside != "red" || *got.Outside != "green" {
		t.Errorf("%v %+v", err, got)
	}
	got = paint{}
	if err := wire.Body.Decode([]byte(`{"outside":"green"}`), &got); err != nil || got.Inside != nil {
		t.Errorf("%v %+v", err, got)
	}
	if err := wire.Body.Decode([]byte(`{"outside":"blue"}`), &got); err == nil || err.Error() != "outside must be one of red, green" {
		t.Errorf("%v", err)
	}
}
