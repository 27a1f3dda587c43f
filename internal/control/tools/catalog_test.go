package tools_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// ours is what the tools have beyond the contract's schemas.
var ours = map[string][]string{"read_file": {"encoding"}, "write_file": {"encoding"}}

func TestSchemasAreTheContracts(t *testing.T) {
	raw, err := os.ReadFile("testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Type       string                    `json:"type"`
		Properties map[string]map[string]any `json:"properties"`
		Required   []string                  `json:"required"`
		Additional *bool                     `json:"additionalProperties"`
	}
	var contract []struct {
		Name, Description string
		InputSchema       schema
	}
	if err := json.Unmarshal(raw, &contract); err != nil {
		t.Fatal(err)
	}
	all := tools.Definitions()
	if len(all) != len(contract)+1 {
		t.Fatalf("%d tools, want the contract's %d and execute_code", len(all), len(contract))
	}
	for i, want := range contract {
		d := all[i]
		var got schema
		if err := json.Unmarshal(d.Input, &got); err != nil {
			t.Fatalf("%s: %v in %s", d.Name, err, d.Input)
		}
		for _, name := range ours[d.Name] {
			if got.Properties[name] == nil {
				t.Errorf("%s lacks %s", d.Name, name)
			}
			delete(got.Properties, name)
		}
		// The contract's numbers are whole ones, and it refuses other fields without saying so.
		for _, p := range want.InputSchema.Properties {
			if p["type"] == "number" {
				p["type"] = "integer"
			}
		}
		want.InputSchema.Additional = new(false)
		if d.Name != want.Name || d.Description != want.Description || !reflect.DeepEqual(got, want.InputSchema) {
			t.Errorf("%s %q: %+v\nwant %s %q: %+v", d.Name, d.Description, got, want.Name, want.Description, want.InputSchema)
		}
	}
	if name := all[len(all)-1].Name; name != tools.ExecuteCodeName {
		t.Errorf("the last tool is %s", name)
	}
}

// TestStrictSchemas: OpenAI's strict mode takes objects with all of their fields required
// and no others, and no defaults. Null is what such a model writes for the fields that it
// would leave out.
func TestStrictSchemas(t *testing.T) {
	for _, d := range tools.Definitions() {
		var lax, strict struct {
			Properties map[string]struct {
				Type    any
				Enum    []any
				Default any
			}
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := errors.Join(json.Unmarshal(d.Input, &lax), json.Unmarshal(d.Strict, &strict)); err != nil {
			t.Fatal(err)
		}
		if strict.Additional == nil || *strict.Additional || strict.Required == nil || len(strict.Required) != len(strict.Properties) || len(lax.Properties) != len(strict.Properties) {
			t.Errorf("%s: %s", d.Name, d.Strict)
		}
		for name, p := range strict.Properties {
			types, null := p.Type.([]any)
			if optional := !slices.Contains(lax.Required, name); null != optional || null && !slices.Contains(types, any("null")) || p.Default != nil ||
				p.Enum != nil && slices.Contains(p.Enum, nil) != null {
				t.Errorf("%s: %s is %+v", d.Name, name, p)
			}
		}
	}
}

// TestOutputSchemas looks for what clients that check outputs trip over: a field
// that is not described, one that is required and may be left out.
func TestOutputSchemas(t *testing.T) {
	for _, d := range tools.Definitions() {
		var s struct {
			Type       string                    `json:"type"`
			Properties map[string]map[string]any `json:"properties"`
			Required   []string                  `json:"required"`
		}
		if err := json.Unmarshal(d.Output, &s); err != nil {
			t.Fatalf("%s: %v in %s", d.Name, err, d.Output)
		}
		// The zero value has every field that is always there, and no other.
		zero, err := json.Marshal(reflect.New(d.Out).Interface())
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(zero, &fields); err != nil {
			t.Fatal(err)
		}
		if s.Type != "object" || len(fields) != len(s.Required) || len(s.Required) == 0 {
			t.Errorf("%s: an output has %v, and %v is required", d.Name, fields, s.Required)
		}
		for _, name := range s.Required {
			if _, ok := fields[name]; !ok || s.Properties[name] == nil {
				t.Errorf("%s: %s is required, and there are %v", d.Name, name, fields)
			}
		}
	}
}

// TestNothingIsDoneThatCannotBeRecorded: the set has no pool, so whatever gets
// further than its checks ends the test.
func TestNothingIsDoneThatCannotBeRecorded(t *testing.T) {
	set := tools.NewSet(tools.SetConfig{})
	for _, c := range []*tools.Caller{
		{Session: "a\x00"}, {Session: "\xff"}, {Session: ""}, {Session: "s", Agent: "\x00"}, {Session: "s", Agent: "\xff"}, {Session: "s", Agent: strings.Repeat("a", 129)},
	} {
		for _, d := range set.Definitions() {
			if _, err := set.Call(t.Context(), d.Name, c, []byte(`{"command":"true","code":"1","path":"x","pattern":"*","content":"","sandbox":"default"}`)); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s by %+v: %v", d.Name, c, err)
			}
		}
	}
}
