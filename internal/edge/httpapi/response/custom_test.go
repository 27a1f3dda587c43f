package response_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/httpapitest"
)

const patchText = "*** Begin Patch\n+x"

// patching is a model that calls a custom tool and answers with the conversation, which includes the
// result.
func patching(q model.Request) []model.Delta {
	if text := last(q); strings.HasPrefix(text, "result: ") {
		return say(conversation(q))
	}
	out := call("apply_patch", patchText)
	out[0].Call.Custom, out[2].Call.Custom = true, true
	return out
}

const patchTool = `"tools": [{"type": "custom", "name": "apply_patch", "description": "Edit.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}}]`

func TestCustomTool(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "patching", "input": "go", `+patchTool+`}`)
	called := r["output"].([]any)[0].(map[string]any)
	if called["type"] != "custom_tool_call" || called["input"] != patchText || called["name"] != "apply_patch" || called["call_id"] != "call_1" || !strings.HasPrefix(called["id"].(string), "ctc_") || called["arguments"] != nil {
		t.Errorf("got %s", show(called))
	}
	if got := r["tools"].([]any)[0].(map[string]any); got["format"].(map[string]any)["definition"] != "start: /x/" {
		t.Errorf("got %s", show(got))
	}
	refused := ask(t, s, 400, "POST", "/v1/responses", fmt.Sprintf(`{"model": "patching", "previous_response_id": %q, "input": "well?"}`, r["id"]))
	if e := refused["error"].(map[string]any); !strings.Contains(e["message"].(string), `no custom_tool_call_output for call_id "call_1"`) {
		t.Errorf("got %v", refused)
	}
	const output = `{"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}`
	r2 := ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(`{"model": "patching", "previous_response_id": %q, "input": [%s], %s}`, r["id"], output, patchTool))
	want(t, r2, "completed", "completed message go | apply_patch("+patchText+") | done")
	items := ask(t, s, 200, "GET", fmt.Sprintf("/v1/responses/%s/input_items", r2["id"]), "")
	if data := items["data"].([]any); len(data) != 1 || data[0].(map[string]any)["type"] != "custom_tool_call_output" {
		t.Errorf("got %s", show(items))
	}
	// Clients send an earlier call again in full, or refer to it by id.
	for _, repeated := range []string{show(called), fmt.Sprintf(`{"type": "item_reference", "id": %q}`, called["id"])} {
		r = ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(`{"model": "patching", "input": [{"role": "user", "content": "go"}, %s, %s], %s}`, repeated, output, patchTool))
		want(t, r, "completed", "completed message go | apply_patch("+patchText+") | done")
	}
	for choice, status := range map[string]int{
		`{"type": "custom", "name": "apply_patch"}`: 200, `{"type": "custom", "name": "other"}`: 400,
		`{"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "apply_patch"}]}`:   200,
		`{"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "apply_patch"}]}`: 400,
	} {
		ask(t, s, status, "POST", "/v1/responses", `{"model": "patching", "input": "go", "tool_choice": `+choice+`, `+patchTool+`}`)
	}
}

func TestCustomToolStream(t *testing.T) {
	s := open(t)
	got, done := "", ""
	for _, e := range events(t, httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "patching", "input": "go", "stream": true, `+patchTool+`}`)) {
		switch e["type"] {
		case "response.output_item.added":
			if it := e["item"].(map[string]any); it["input"] != "" || it["type"] != "custom_tool_call" {
				t.Errorf("it begins as %s", show(it))
			}
		case "response.custom_tool_call_input.delta":
			got += e["delta"].(string)
		case "response.custom_tool_call_input.done":
			done = e["input"].(string)
		case "response.function_call_arguments.delta", "response.function_call_arguments.done":
			t.Errorf("got %s", show(e))
		}
	}
	if got != patchText || done != patchText {
		t.Errorf("the events have %q and %q", got, done)
	}
}

func TestCustomToolRefused(t *testing.T) {
	s := open(t)
	for tool, words := range map[string]string{
		`{"type": "custom"}`:                                                               "tools[0]: name is required",
		`{"type": "custom", "name": "a b"}`:                                                "tools[0].name must have 1 to 64",
		`{"type": "custom", "name": "a", "format": {"type": "grammar"}}`:                   "tools[0].format must have a syntax",
		`{"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "ebnf"}}`: "syntax",
		`{"type": "custom", "name": "a", "format": {"type": "json"}}`:                      "type",
		`{"type": "custom", "name": "a"}, {"type": "function", "name": "a"}`:               `two that are called "a"`,
		`{"type": "custom", "name": "a", "parameters": {}}`:                                "parameters",
		`{"type": "customs", "name": "a"}`:                                                 "function, custom, mcp",
	} {
		r := ask(t, s, 400, "POST", "/v1/responses", `{"model": "echo", "input": "x", "tools": [`+tool+`]}`)
		if message := r["error"].(map[string]any)["message"].(string); !strings.Contains(message, words) {
			t.Errorf("%s: got %s", tool, message)
		}
	}
}

// TestClientMetadata checks that the server accepts the metadata of clients such as Codex within its
// limits, and does not store it.
func TestClientMetadata(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "echo", "input": "x", "client_metadata": {"x-codex-installation-id": "1b9d6bcd"}}`)
	want(t, r, "completed", "completed message x")
	if got := show(r); strings.Contains(got, "1b9d6bcd") {
		t.Errorf("the response has it: %s", got)
	}
	if d := r["usage"].(map[string]any)["input_tokens_details"].(map[string]any); d["cache_write_tokens"] != 0.0 {
		t.Errorf("got %s", show(d))
	}
	var pairs []string
	for i := range 65 {
		pairs = append(pairs, fmt.Sprintf(`"k%d": ""`, i))
	}
	for given, words := range map[string]string{
		strings.Join(pairs, ","):                     "client_metadata must have at most 64 pairs",
		`"k": "` + strings.Repeat("x", 64<<10) + `"`: "65536 bytes",
		`"k": 1`: "client_metadata",
	} {
		r := ask(t, s, 400, "POST", "/v1/responses", `{"model": "echo", "input": "x", "client_metadata": {`+given+`}}`)
		if message := r["error"].(map[string]any)["message"].(string); !strings.Contains(message, words) {
			t.Errorf("got %s", message)
		}
	}
}
