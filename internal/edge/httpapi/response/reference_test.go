package response_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestReference: an item of an earlier response stands for what the model was told of it,
// whether the client refers to it or repeats it, if it is the caller's and kept.
func TestReference(t *testing.T) {
	s := open(t)
	const sandbox = `"tools": [{"type": "sandbox"}]`
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "code", "input": "lines", `+sandbox+`}`)
	ran := r["output"].([]any)[0].(map[string]any)
	again := func(items ...string) string {
		return fmt.Sprintf(`{"model": "all", "input": [{"role": "user", "content": "lines"}, %s, {"role": "user", "content": "and?"}]}`, strings.Join(items, ", "))
	}
	refer := func(id any) string { return fmt.Sprintf(`{"type": "item_reference", "id": %q}`, id) }
	const told = `lines | run_code({"language": "python", "code": "lines"}) | Exit code 0`
	for _, item := range []string{refer(ran["id"]), show(ran)} {
		answer := ask(t, s, 200, "POST", "/v1/responses", again(item))
		if got := output(answer); !strings.Contains(got, told) || !strings.HasSuffix(got, "| and?") {
			t.Errorf("the model was told %s", got)
		}
	}
	said := r["output"].([]any)[1].(map[string]any)
	if got := output(ask(t, s, 200, "POST", "/v1/responses", again(refer(said["id"])))); !strings.Contains(got, "lines | result: Exit code 0") {
		t.Errorf("the model was told %s", got)
	}

	unkept := ask(t, s, 200, "POST", "/v1/responses", `{"model": "code", "input": "lines", "store": false, `+sandbox+`}`)
	ran = unkept["output"].([]any)[0].(map[string]any)
	if got := output(ask(t, s, 200, "POST", "/v1/responses", again(show(ran)))); !strings.Contains(got, `run_code({"code":"lines","language":"python"}) | {`) || !strings.Contains(got, `"stdout":"one\nno newline"`) {
		t.Errorf("the model was told %s", got)
	}
	refused := ask(t, s, 404, "POST", "/v1/responses", again(refer(ran["id"])))
	if message, _ := refused["message"].(string); !strings.Contains(message, "input[1]: there is no item with the id") {
		t.Errorf("refused by %q", message)
	}
	foreign := httpapitest.Ask(s, "POST", "/v1/responses", again(refer(said["id"])), "Authorization", "Bearer "+stranger(t, s))
	if foreign.Code != 404 {
		t.Errorf("another tenant refers to it: %d %s", foreign.Code, foreign.Body)
	}
	// The items of an input have ids of their own.
	items := ask(t, s, 200, "GET", fmt.Sprintf("/v1/responses/%s/input_items", r["id"]), "")
	if id := items["data"].([]any)[0].(map[string]any)["id"]; id == said["id"] {
		t.Errorf("an input has the id %v of an output", id)
	}
}

// TestAllowedTools: a choice of allowed tools leaves the model those.
func TestAllowedTools(t *testing.T) {
	s := open(t)
	request := func(choice string) string {
		return `{"model": "tools", "input": "x", "tools": [{"type": "sandbox"}, {"type": "function", "name": "a"}, {"type": "function", "name": "b"}],
			"tool_choice": {"type": "allowed_tools", ` + choice + `}}`
	}
	for choice, told := range map[string]string{
		`"mode": "auto", "tools": [{"type": "function", "name": "b"}]`:                      "b",
		`"mode": "none", "tools": [{"type": "sandbox"}, {"type": "function", "name": "a"}]`: "run_code a",
	} {
		r := ask(t, s, 200, "POST", "/v1/responses", request(choice))
		first, last, _ := strings.Cut(told, " ")
		if got := strings.TrimPrefix(output(r), "completed message "); !strings.HasPrefix(got, first) || !strings.HasSuffix(got, last) || strings.HasSuffix(got, "a b") {
			t.Errorf("%s: the model has %q, want %s", choice, got, told)
		}
		if n := len(r["tools"].([]any)); n != 3 {
			t.Errorf("the response shows %d tools", n)
		}
	}
	for choice, message := range map[string]string{
		`"mode": "auto", "tools": [{"type": "function", "name": "c"}]`: "tool_choice.tools[0] names none",
		`"tools": [{"type": "sandbox"}]`:                               "must have a mode",
		`"mode": "auto"`:                                               "must have a mode and tools",
	} {
		r := ask(t, s, 400, "POST", "/v1/responses", request(choice))
		if got, _ := r["message"].(string); !strings.Contains(got, message) {
			t.Errorf("%s: %q, want %q", choice, got, message)
		}
	}
}
