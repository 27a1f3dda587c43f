package response_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	responseapi "github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

const (
	living  = container.ID("cntr_0123456789abcdef")
	expired = container.ID("cntr_fedcba9876543210")
)

// boxes has two containers, one of which has expired.
type boxes struct{}

func (boxes) Get(_ context.Context, p *tenant.Principal, session, id string) (*sandbox.Sandbox, error) {
	spec, err := container.Settings{Name: "a", Minutes: 20}.Spec(p)
	if err != nil {
		return nil, err
	}
	sb := &sandbox.Sandbox{Session: session, Env: spec.Env, State: sandbox.Running}
	switch id {
	case "sb-0123456789abcdef":
	case "sb-fedcba9876543210":
		sb.State = sandbox.Destroyed
	default:
		return nil, fault.New(fault.NotFound, "sandbox not found")
	}
	return sb, nil
}

func (boxes) Destroy(context.Context, *tenant.Principal, string, string) error { return nil }

// plotting is code_interpreter whose code always shows the same.
type plotting struct{}

func (plotting) item(c *loop.Call, s run.ItemStatus, o interpreter.Output) (*run.Item, error) {
	text, err := json.Marshal(o)
	return &run.Item{Status: s, Use: &run.ToolUse{CallID: c.Call.ID, Tool: interpreter.Name, Input: json.RawMessage(c.Call.Arguments), Output: text}}, err
}

func (p plotting) Show(c *loop.Call) (*run.Item, error) {
	if _, err := interpreter.Parse(c.Call.Arguments); err != nil {
		return nil, err
	}
	return p.item(c, run.ItemInProgress, interpreter.Output{})
}

func (p plotting) Do(_ context.Context, c *loop.Call) (*loop.Outcome, error) {
	it, err := p.item(c, run.ItemCompleted, interpreter.Output{Container: living, Logs: "42\n", Images: []interpreter.Image{{MediaType: "image/png", Data: []byte("png")}}})
	return &loop.Outcome{Result: model.Result{Parts: []model.Part{{Kind: model.PartText, Text: "42"}}}, Item: it}, err
}

func openInterpreter(t *testing.T) *httpapitest.Server {
	t.Helper()
	m := models{"code": func(q model.Request) []model.Delta {
		if text := last(q); strings.HasPrefix(text, "result: ") {
			return say(text)
		}
		arguments, _ := json.Marshal(interpreter.Input{Code: new(last(q))})
		return call(interpreter.Name, string(arguments))
	}, "pieces": func(q model.Request) []model.Delta {
		if text := last(q); strings.HasPrefix(text, "result: ") {
			return say(text)
		}
		whole := last(q)
		deltas := call(interpreter.Name, whole)
		pieces := []model.Delta{deltas[0]}
		for text := whole; text != ""; {
			n := min(2, len(text))
			pieces = append(pieces, model.Delta{Kind: model.CallArguments, Text: text[:n]})
			text = text[n:]
		}
		return append(pieces, deltas[2:]...)
	}}
	return httpapitest.New(t, func(s *httpapitest.Setup) {
		l := loop.New(loop.Config{
			Store: s.World.DB.Runs(), Models: m, Events: s.World.Bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "here",
			Handlers: map[string]loop.Handler{interpreter.Name: plotting{}},
		})
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Stop)
		s.Responses = &responseapi.Handlers{Service: response.New(response.Config{Runs: l, Seal: storetest.Box(t), Gate: &admission.Gate{Models: m}, Records: s.World.DB.Runs(), Keep: time.Hour, Containers: boxes{}, Log: slog.New(slog.DiscardHandler)})}
	})
}

// answered sends a request and reads the JSON of its answer. The open specification has no
// code_interpreter to hold it against.
func answered(t *testing.T, s *httpapitest.Server, status int, method, path, body string) (out map[string]any) {
	t.Helper()
	w := httpapitest.Ask(s, method, path, body)
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, status)
	}
	return out
}

const interpreting = `"model": "code", "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]`

func TestInterpreter(t *testing.T) {
	s := openInterpreter(t)
	const shown = `{"code":"6*7","container_id":"cntr_0123456789abcdef","id":%q,"outputs":%s,"status":"completed","type":"code_interpreter_call"}`
	const outputs = `[{"logs":"42\n","type":"logs"},{"type":"image","url":"data:image/png;base64,cG5n"}]`
	r := answered(t, s, 200, "POST", "/v1/responses", `{`+interpreting+`, "input": "6*7", "include": ["code_interpreter_call.outputs"], "tool_choice": {"type": "code_interpreter"}}`)
	first := r["output"].([]any)[0].(map[string]any)
	if got := show(first); got != fmt.Sprintf(shown, first["id"], outputs) {
		t.Errorf("got %s", got)
	}
	if got := show(r["usage"].(map[string]any)["tool_calls_details"]); got != `{"code_interpreter":{"invocation":1}}` {
		t.Errorf("counted %s", got)
	}
	if show(r["tool_choice"]) != `{"type":"code_interpreter"}` || show(r["tools"]) != `[{"container":{"type":"auto"},"type":"code_interpreter"}]` {
		t.Errorf("got %s %s", show(r["tool_choice"]), show(r["tools"]))
	}
	r = answered(t, s, 200, "POST", "/v1/responses", `{`+interpreting+`, "input": "6*7"}`)
	first = r["output"].([]any)[0].(map[string]any)
	if got := show(first); got != fmt.Sprintf(shown, first["id"], "null") {
		t.Errorf("outputs that were not asked for: %s", got)
	}
	for _, query := range []string{"include", "include[]"} {
		got := answered(t, s, 200, "GET", "/v1/responses/"+r["id"].(string)+"?"+query+"=code_interpreter_call.outputs", "")
		if show(got["output"].([]any)[0]) != fmt.Sprintf(shown, first["id"], outputs) {
			t.Errorf("asked for later: %s", show(got))
		}
	}
	back := answered(t, s, 200, "POST", "/v1/responses", `{"model": "code", "input": [`+show(first)+`, {"role": "user", "content": "x"}]}`)
	if back["status"] != "completed" {
		t.Errorf("a call that comes back: %s", show(back))
	}
}

// TestInterpreterStream: the sequence is the same when it is read again, also when the item
// is too large for its event.
func TestInterpreterStream(t *testing.T) {
	s := openInterpreter(t)
	for _, code := range []string{"6*7", strings.Repeat("ü = 1 # ", 200_000)} {
		w := httpapitest.Ask(s, "POST", "/v1/responses", fmt.Sprintf(`{%s, "input": %q, "stream": true}`, interpreting, code))
		live := w.Body.String()
		var kinds []string
		said, id := "", ""
		for line := range strings.Lines(live) {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var e struct {
				Type, Delta, Code string
				Response          struct{ ID string }
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			if e.Response.ID != "" {
				id = e.Response.ID
			}
			switch {
			case strings.HasSuffix(e.Type, "code.delta"):
				said += e.Delta
			case strings.HasSuffix(e.Type, "code.done"):
				if e.Code != code {
					t.Errorf("%d bytes of code are done", len(e.Code))
				}
				fallthrough
			case strings.Contains(e.Type, "code_interpreter"):
				kinds = append(kinds, strings.TrimPrefix(e.Type, "response.code_interpreter_call"))
			}
		}
		if got := strings.Join(kinds, " "); got != ".in_progress _code.done .interpreting .completed" || said != code {
			t.Errorf("%s, %d bytes of deltas", got, len(said))
		}
		if again := httpapitest.Ask(s, "GET", "/v1/responses/"+id+"?stream=true", "").Body.String(); again != live {
			at := 0
			for at < min(len(again), len(live)) && again[at] == live[at] {
				at++
			}
			t.Errorf("read again: %d bytes, and there were %d; after %d %q, and there was %q", len(again), len(live), at, again[at:min(at+300, len(again))], live[at:min(at+300, len(live))])
		}
	}
}

// TestInterpreterWrites: code is told as the model writes it, whatever its pieces are.
func TestInterpreterWrites(t *testing.T) {
	s := openInterpreter(t)
	for arguments, want := range map[string]string{
		`{"timeout":5,"code":"a = \"\u00e9\ud83d\ude00\"\nprint(a)"}`: "a = \"é😀\"\nprint(a)",
		`{"code":""}`:                  "",
		`{"code":"half of it", "x":1}`: "half of it", // which the tool refuses
		`{"code":5}`:                   "",
		`no JSON`:                      "",
	} {
		refused := want == "half of it" || !strings.Contains(arguments, `"code":"`)
		body := show(map[string]any{"model": "pieces", "input": arguments, "stream": true, "tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]any{"type": "auto"}}}})
		w := httpapitest.Ask(s, "POST", "/v1/responses", body)
		live := w.Body.String()
		all := events(t, w)
		said, deltas := "", 0
		for _, e := range all {
			if strings.HasSuffix(e["type"].(string), "call_code.delta") {
				said += e["delta"].(string)
				deltas++
			}
		}
		kinds := typesOf(all)
		if said != want || len(want) > 10 && !refused && deltas < 5 || refused == strings.Contains(kinds, "interpreting") {
			t.Errorf("%s: %q in %d pieces, %s", arguments, said, deltas, kinds)
		}
		r := all[len(all)-1]["response"].(map[string]any)
		it := item(t, r, "code_interpreter_call")
		if it["code"] != want || refused != (it["status"] == "failed") {
			t.Errorf("%s: %s", arguments, show(it))
		}
		again := httpapitest.Ask(s, "GET", "/v1/responses/"+r["id"].(string)+"?stream=true", "")
		if again.Body.String() != live {
			t.Errorf("%s: read again it is another sequence", arguments)
		}
	}
}

func TestInterpreterRefusals(t *testing.T) {
	s := openInterpreter(t)
	with := func(tool string) string {
		return `{"model": "code", "input": "x", "tools": [{"type": "code_interpreter"` + tool + `}]}`
	}
	for body, want := range map[string]string{
		with(``): "400 container", with(`, "container": 5`): "400 container", with(`, "container": {"type": "new"}`): "400 type",
		with(`, "container": "cntr_1"`): "404 not found, or expired", with(`, "container": "cntr_0000000000000000"`): "404 not found, or expired",
		with(`, "container": "` + string(expired) + `"`): "404 expired", with(`, "container": "` + string(living) + `"`): "200",
		with(`, "container": {"type": "auto", "file_ids": ["file-1"]}`):                                                          "400 file_ids",
		with(`, "container": {"type": "auto", "memory_limit": "64g"}`):                                                           "400 memory_limit",
		with(`, "container": {"type": "auto", "memory_limit": "2g"}`):                                                            "400 memory_limit",
		with(`, "container": {"type": "auto", "skills": [{}]}`):                                                                  "400 skills",
		with(`, "container": {"type": "auto", "network_policy": {"type": "open"}}`):                                              "400 type",
		with(`, "container": {"type": "auto", "network_policy": {"type": "allowlist"}}`):                                         "400 allowed_domains",
		with(`, "container": {"type": "auto", "network_policy": {"type": "disabled"}}`):                                          "200",
		with(`, "container": {"type": "auto"}}, {"type": "code_interpreter", "container": {"type": "auto"}`):                     "400 twice",
		with(`, "container": {"type": "auto"}}, {"type": "function", "name": "code_interpreter"`):                                `400 two that are called`,
		`{"model": "code", "input": "x", "tool_choice": {"type": "code_interpreter"}}`:                                           "400 not among tools",
		`{"model": "code", "input": "x", "include": ["file_search_call.results"]}`:                                               "400 code_interpreter_call.outputs",
		`{"model": "code", "input": [{"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [{"type": "x"}]}]}`: "400 input[0]: outputs[0].type",
	} {
		status, word, _ := strings.Cut(want, " ")
		w := httpapitest.Ask(s, "POST", "/v1/responses", body)
		if fmt.Sprint(w.Code) != status || !strings.Contains(w.Body.String(), word) {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
}
