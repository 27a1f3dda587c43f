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
	Names *[]string      `json:"names,omitzero"`
	Head  *part          `json:"head"`
	Tail  *part          `json:"tail,omitzero"`
	Any   jsontext.Value `json:"any"`
}

func TestForModel(t *testing.T) {
	const want = `{"type":"object","properties":{` +
		`"ok":{"type":"boolean"},"count":{"type":"number","description":"How many."},` +
		`"error":{"type":["string","null"],"enum":["A","B",null]},"at":{"type":["string","null"]},` +
		`"parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string","enum":["a","b"]}},"required":["name"]}},` +
		`"limit":{"type":"number","default":30}},"required":["ok","count","error","at","parts"]}`
	type known struct {
		OK    bool       `json:"ok" required:"true"`
		Count int64      `json:"count" required:"true" doc:"How many."`
		Error *string    `json:"error" required:"true" nullable:"true" enum:"A,B"`
		At    *time.Time `json:"at" required:"true" nullable:"true"`
		Parts []part     `json:"parts" required:"true"`
		Limit *float64   `json:"limit,omitzero" default:"30" minimum:"1"`
	}
	if got := string(wire.ForModel(reflect.TypeFor[known]())); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
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
	if got := string(wire.ForModel(reflect.TypeFor[paint]())); got != model {
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
