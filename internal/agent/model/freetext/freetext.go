// Package freetext offers custom tools to models whose provider supports only functions: each tool
// becomes a function with one string parameter.
package freetext

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// member names the function's only parameter, which carries the text.
const member = "input"

var parameters = []byte(`{"type":"object","properties":{"` + member + `":{"type":"string","description":"The input of the tool, as plain text."}},"required":["` + member + `"],"additionalProperties":false}`)

// New returns a model that implements custom tools with m's functions.
func New(m model.Model) model.Model { return &functions{m} }

type functions struct{ model model.Model }

// Generate implements model.Model.
func (f *functions) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	custom := map[string]bool{}
	for _, t := range r.Tools {
		if t.Custom != nil {
			custom[t.Name] = true
		}
	}
	carries := slices.ContainsFunc(r.Items, func(it model.Item) bool { return it.Call != nil && it.Call.Custom })
	if len(custom) == 0 && !carries {
		return f.model.Generate(ctx, r)
	}
	r.Tools, r.Items = tools(r.Tools), items(r.Items)
	return func(yield func(model.Delta, error) bool) {
		calls := map[int]*wire.Partial{} // unfinished custom calls, by index
		for d, err := range f.model.Generate(ctx, r) {
			if err == nil && !translate(&d, custom, calls) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// translate turns a delta of a function call into one of the custom tool's call. It reports whether
// the delta still carries anything.
func translate(d *model.Delta, custom map[string]bool, calls map[int]*wire.Partial) bool {
	switch d.Kind {
	case model.CallBegun:
		if d.Call.Custom = custom[d.Call.Name]; d.Call.Custom {
			calls[d.Index] = wire.NewPartial(member)
		}
	case model.CallArguments:
		if p := calls[d.Index]; p != nil {
			d.Text = p.Write(d.Text)
			return d.Text != ""
		}
	case model.CallEnded:
		if calls[d.Index] != nil {
			d.Call.Custom, d.Call.Arguments = true, text(d.Call.Arguments)
		}
	}
	return true
}

// tools replaces custom tools with functions.
func tools(given []model.Tool) []model.Tool {
	out := slices.Clone(given)
	for i := range out {
		t := &out[i]
		if t.Custom == nil {
			continue
		}
		if g := t.Custom; g.Grammar != "" {
			t.Description = strings.TrimSpace(fmt.Sprintf("%s\n\nThe input must match this %s:\n%s", t.Description, grammars[g.Syntax], g.Grammar))
		}
		t.Custom, t.Parameters = nil, parameters
	}
	return out
}

var grammars = map[model.Syntax]string{model.SyntaxLark: "Lark grammar", model.SyntaxRegex: "regular expression"}

// items replaces calls of custom tools with calls of functions.
func items(given []model.Item) []model.Item {
	out := slices.Clone(given)
	for i := range out {
		if c := out[i].Call; c != nil && c.Custom {
			call := *c
			arguments, _ := jsontext.AppendQuote([]byte(`{"`+member+`":`), c.Arguments) // replaces invalid UTF-8
			call.Custom, call.Arguments = false, string(append(arguments, '}'))
			out[i].Call = &call
		}
	}
	return out
}

// text returns the input in a call's arguments. Malformed arguments pass through as the text: the
// tool's owner can tell the model better how to correct them.
func text(arguments string) string {
	var in map[string]json.RawMessage
	var out string
	if json.Unmarshal([]byte(arguments), &in) == nil && in != nil {
		if len(in) == 0 {
			return ""
		}
		if json.Unmarshal(in[member], &out) == nil {
			return out
		}
	}
	return arguments
}
