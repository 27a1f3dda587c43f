// Package openresponses holds requests, answers and events against the open Responses
// specification. Tests use it where they see what clients send and get.
//
// Tools, items and events that only Atoll's contract has are left out of what is checked:
// the specification leaves room for them. That they are well formed is for the OpenAPI
// document to say.
package openresponses

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6" // the MCP SDK's library cannot resolve references into a document around the schema
)

// spec is the specification as openresponses.org publishes it, under the Apache License 2.0.
//
//go:embed openresponses.json
var spec []byte

// place is where the specification is for the compiler of schemas.
const place = "https://open.invalid/spec.json"

type checker struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler          // guarded by mu
	schemas  map[string]*jsonschema.Schema // guarded by mu
	events   map[string]string             // schemas by the types of events
}

var load = sync.OnceValue(func() *checker {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec))
	if err != nil {
		panic(err)
	}
	c := &checker{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, events: map[string]string{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := c.compiler.AddResource(place, raw); err != nil {
		panic(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties struct {
					Type struct{ Enum []string }
					// Only events have it.
					Sequence json.RawMessage `json:"sequence_number"`
				}
			}
		}
	}
	if err := json.Unmarshal(spec, &doc); err != nil {
		panic(err)
	}
	for name, schema := range doc.Components.Schemas {
		if kinds := schema.Properties.Type.Enum; len(kinds) == 1 && schema.Properties.Sequence != nil {
			c.events[kinds[0]] = name
		}
	}
	return c
})

// Check holds a value against a schema of the specification.
func Check(schema string, value any) error {
	c := load()
	c.mu.Lock()
	defer c.mu.Unlock()
	compiled, ok := c.schemas[schema]
	if !ok {
		var err error
		if compiled, err = c.compiler.Compile(place + "#/components/schemas/" + schema); err != nil {
			return err
		}
		c.schemas[schema] = compiled
	}
	if err := compiled.Validate(value); err != nil {
		text, _ := json.Marshal(value)
		return fmt.Errorf("by the specification this is no %s: %s: %w", schema, text, err)
	}
	return nil
}

// ours are the types of items that only our contract has.
var ours = []string{
	"sandbox_results", "share_file", "sandbox_write_file", "sandbox_read_file", "sandbox_edit_file", "sandbox_grep", "sandbox_glob", "sandbox_apply_patch",
	"code_interpreter_call", "search_results", "fetch_url_results", "web_search_call",
	"mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response", "custom_tool_call", "custom_tool_call_output",
}

// oursIncluded are what requests include that only our contract has.
var oursIncluded = []any{"code_interpreter_call.outputs", "web_search_call.action.sources"}

// oursEvent reports whether only our contract has a type of events.
func oursEvent(kind string) bool {
	for _, family := range []string{"response.code_interpreter_call", "response.web_search_call.", "response.mcp_call", "response.mcp_list_tools.", "response.reasoning.search_", "response.reasoning.fetch_url_", "response.custom_tool_call_input."} {
		if strings.HasPrefix(kind, family) {
			return true
		}
	}
	return kind == "response.cancelled" || kind == "response.reasoning.started" || kind == "response.reasoning.stopped"
}

// shared leaves out what only our contract has.
func shared(body map[string]any) map[string]any {
	body = maps.Clone(body)
	for _, member := range []string{"input", "output"} {
		if items, ok := body[member].([]any); ok {
			body[member] = slices.DeleteFunc(slices.Clone(items), func(it any) bool { return slices.Contains(ours, kindOf(it)) })
		}
	}
	if include, ok := body["include"].([]any); ok {
		body["include"] = slices.DeleteFunc(slices.Clone(include), func(what any) bool { return slices.Contains(oursIncluded, what) })
	}
	functions(body)
	if choice, ok := body["tool_choice"].(map[string]any); ok {
		choice = maps.Clone(choice)
		functions(choice)
		if body["tool_choice"] = choice; choice["type"] != "function" && choice["type"] != "allowed_tools" {
			body["tool_choice"] = "auto" // names a tool that is ours alone
		}
	}
	// Every client and server has the schema there, for which the specification has null
	// alone.
	if text, ok := body["text"].(map[string]any); ok {
		if format, ok := text["format"].(map[string]any); ok && format["schema"] != nil {
			text, format = maps.Clone(text), maps.Clone(format)
			format["schema"], text["format"], body["text"] = nil, format, text
		}
	}
	return body
}

// functions leaves a member with tools those that are functions.
func functions(of map[string]any) {
	if tools, ok := of["tools"].([]any); ok {
		of["tools"] = slices.DeleteFunc(slices.Clone(tools), func(tool any) bool {
			return kindOf(tool) != "function"
		})
	}
}

func kindOf(value any) string {
	members, _ := value.(map[string]any)
	kind, _ := members["type"].(string)
	return kind
}

// Request checks the body of POST /v1/responses.
func Request(body map[string]any) error {
	asked := shared(body)
	if text, ok := body["text"]; ok {
		asked["text"] = text // there it has the schema, too
	}
	return Check("CreateResponseBody", asked)
}

// Response checks a response.
func Response(body map[string]any) error { return Check("ResponseResource", shared(body)) }

// Refusal checks the body of an answer that is an error.
func Refusal(body map[string]any) error { return Check("ErrorPayload", body["error"]) }

// Event checks an event of a stream.
func Event(e map[string]any) error {
	kind, _ := e["type"].(string)
	if response, ok := e["response"].(map[string]any); ok {
		e = maps.Clone(e)
		e["response"] = shared(response)
		if err := Response(response); err != nil {
			return err
		}
	}
	if item, ok := e["item"]; ok && slices.Contains(ours, kindOf(item)) || oursEvent(kind) {
		return nil
	}
	schema, ok := load().events[kind]
	if !ok {
		return fmt.Errorf("neither the specification nor our contract has events of the type %q", kind)
	}
	return Check(schema, e)
}
