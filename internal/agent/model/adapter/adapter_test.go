package adapter_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// reach is a transport that reaches loopback, and leaves no connection open.
func reach(t testing.TB) *http.Transport {
	t.Helper()
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	rt := transport.New(allow)
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

func open(t testing.TB, r model.Record, rt http.RoundTripper, b model.Bounds) model.Model {
	t.Helper()
	m, err := adapter.Open(r, rt, b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// each runs a test for every protocol.
func each(t *testing.T, test func(t *testing.T, p model.Provider)) {
	for _, p := range model.Providers() {
		t.Run(string(p), func(t *testing.T) { test(t, p) })
	}
}

var hello = model.Request{Items: []model.Item{model.Text(model.User, "hello")}}

// plain is an answer as a test can compare it: its origins and the ids of its reasoning,
// which protocols have in forms of their own, left out.
func plain(a model.Answer) model.Answer {
	for _, it := range a.Items {
		if it.Reasoning != nil {
			it.Reasoning.State.Origin, it.Reasoning.State.ID = "", ""
		}
		if it.Call != nil {
			it.Call.State = model.State{}
		}
	}
	return a
}

func said(text string) model.Item { return model.Text(model.Assistant, text) }

func called(id, name, arguments string) model.Item {
	return model.Item{Call: &model.Call{ID: id, Name: name, Arguments: arguments}}
}

// TestAnswers gives every adapter the same answers, in its protocol.
func TestAnswers(t *testing.T) {
	parallel := []scriptedmodel.Block{
		{Text: []string{"Let me ", "", "look."}},
		{Call: &scriptedmodel.Call{ID: "call_a", Name: "run", Arguments: []string{`{"co`, ``, `de":"print(`, `1)"}`}}},
		{Call: &scriptedmodel.Call{ID: "call_b", Name: "read", Arguments: []string{`{"path":`, `"/tmp/ü"}`}}},
		{Call: &scriptedmodel.Call{ID: "call_c", Name: "list"}},
	}
	wantParallel := []model.Item{said("Let me look."), called("call_a", "run", `{"code":"print(1)"}`), called("call_b", "read", `{"path":"/tmp/ü"}`), called("call_c", "list", `{}`)}
	full := &model.Usage{Input: 1000, CacheRead: 600, CacheWrite: 100, Output: 50, Reasoning: 20}
	for name, c := range map[string]struct {
		turn scriptedmodel.Turn
		want model.Answer
		only []model.Provider
	}{
		"text": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"Hel", "lo ", "🌊"}}}, Usage: full, Header: http.Header{"X-Request-Id": {"req_1"}}},
			model.Answer{Items: []model.Item{said("Hello 🌊")}, Stop: model.StopEnd, Usage: *full, Counted: true, RequestID: "req_1"}, nil,
		},
		"citations": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"See ", "🌊."}, Cites: []model.Citation{
				{URL: "https://a.org/1", Title: "One", End: 6}, {URL: "javascript:alert(1)", Title: "no page"}, {URL: "https://b.org", Title: "", End: 6},
			}}}},
			model.Answer{Items: []model.Item{{Message: &model.Message{Role: model.Assistant, Parts: []model.Part{{Kind: model.PartText, Text: "See 🌊.", Citations: []model.Citation{
				{URL: "https://a.org/1", Title: "One", End: 6}, {URL: "https://b.org", End: 6},
			}}}}}}, Stop: model.StopEnd}, nil,
		},
		"nothing": {scriptedmodel.Turn{}, model.Answer{Stop: model.StopEnd}, nil},
		"calls": {
			scriptedmodel.Turn{Blocks: parallel, Usage: &model.Usage{Input: 3, Output: 2}},
			model.Answer{Items: wantParallel, Stop: model.StopToolCalls, Usage: model.Usage{Input: 3, Output: 2}, Counted: true}, nil,
		},
		"calls that take turns": {
			scriptedmodel.Turn{Blocks: parallel, Interleave: true}, model.Answer{Items: wantParallel, Stop: model.StopToolCalls}, []model.Provider{"openai", "openai-chat"},
		},
		"reasoning": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Thought: []string{"Hm", "m."}, State: "signed"}, {Text: []string{"42"}}}},
			model.Answer{Items: []model.Item{{Reasoning: &model.Thought{Text: "Hmm.", State: model.State{Data: "signed"}}}, said("42")}, Stop: model.StopEnd},
			[]model.Provider{"openai", "anthropic"},
		},
		"a summary": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Summary: []string{"First.", "Then."}, State: "sealed"}, {Text: []string{"42"}}}},
			model.Answer{Items: []model.Item{{Reasoning: &model.Thought{Summary: []string{"First.", "Then."}, State: model.State{Data: "sealed"}}}, said("42")}, Stop: model.StopEnd},
			[]model.Provider{"openai"},
		},
		"plain reasoning": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Thought: []string{"Hm", "m."}}, {Text: []string{"42"}}}},
			model.Answer{Items: []model.Item{{Reasoning: &model.Thought{Text: "Hmm."}}, said("42")}, Stop: model.StopEnd}, []model.Provider{"openai-chat"},
		},
		"too long": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"and so"}}}, Stop: model.StopMaxTokens},
			model.Answer{Items: []model.Item{said("and so")}, Stop: model.StopMaxTokens}, nil,
		},
		"filtered": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"x"}}}, Stop: model.StopFilter},
			model.Answer{Items: []model.Item{said("x")}, Stop: model.StopFilter}, []model.Provider{"openai", "openai-chat"},
		},
		"refused": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Refusal: "I won't."}}},
			model.Answer{Items: []model.Item{{Message: &model.Message{Role: model.Assistant, Parts: []model.Part{{Kind: model.PartRefusal, Text: "I won't."}}}}}, Stop: model.StopRefusal},
			[]model.Provider{"openai", "openai-chat"},
		},
		"stopped as refused": {
			scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Refusal: "I won't."}}, Stop: model.StopRefusal},
			model.Answer{Items: []model.Item{said("I won't.")}, Stop: model.StopRefusal}, []model.Provider{"anthropic"},
		},
	} {
		for _, p := range model.Providers() {
			if c.only != nil && !slices.Contains(c.only, p) {
				continue
			}
			t.Run(name+"/"+string(p), func(t *testing.T) {
				s := scriptedmodel.New(t, c.turn)
				got, err := model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
				if err != nil {
					t.Fatal(err)
				}
				if got := plain(got); !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %s\nwant %s", text(got), text(c.want))
				}
			})
		}
	}
}

func text(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}

// TestDialects are streams as servers of other makers send them.
func TestDialects(t *testing.T) {
	chunk := func(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }
	finish := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	call := model.Answer{Items: []model.Item{called("c1", "run", `{"a":1}`)}, Stop: model.StopToolCalls}
	for name, c := range map[string]struct {
		p      model.Provider
		events []string
		want   model.Answer
	}{
		"a call that is whole at once, without index": {"openai-chat", []string{chunk(`{"tool_calls":[{"id":"c1","function":{"name":"run","arguments":"{\"a\":1}"}}]}`), finish, "[DONE]"}, call},
		"arguments that are an object":                {"openai-chat", []string{chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"run","arguments":{"a":1}}}]}`), finish, "[DONE]"}, call},
		"every call is the first": {
			"openai-chat",
			[]string{
				chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"run","arguments":"{\"a\":1}"}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"c2","function":{"name":"run","arguments":"{\"a\":2}"}}]}`), finish, "[DONE]",
			},
			model.Answer{Items: []model.Item{called("c1", "run", `{"a":1}`), called("c2", "run", `{"a":2}`)}, Stop: model.StopToolCalls},
		},
		"an id that is repeated, or empty": {
			"openai-chat",
			[]string{
				chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"run","arguments":""}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"{\"a\""}}]}`),
				chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":":1}"}}]}`), finish, "[DONE]",
			}, call,
		},
		"no end mark, usage with the finish": {
			"openai-chat",
			[]string{chunk(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_cache_hit_tokens":5}}`},
			model.Answer{Items: []model.Item{said("hi")}, Stop: model.StopEnd, Usage: model.Usage{Input: 7, CacheRead: 5, Output: 2}, Counted: true},
		},
		"text in parts, empty choices": {
			"openai-chat", []string{`{"choices":[],"prompt_filter_results":[]}`, chunk(`{"content":[{"type":"text","text":"hi"}]}`), finish, "[DONE]"},
			model.Answer{Items: []model.Item{said("hi")}, Stop: model.StopEnd},
		},
		"reasoning in two fields": {
			"openai-chat", []string{chunk(`{"reasoning":"hm","reasoning_content":"hm"}`), chunk(`{"content":"hi"}`), finish, "[DONE]"},
			model.Answer{Items: []model.Item{{Reasoning: &model.Thought{Text: "hm"}}, said("hi")}, Stop: model.StopEnd},
		},
		"text that is not streamed": {
			"openai",
			[]string{
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}`,
				`{"type":"response.of_a_later_version","delta":{"x":1}}`, `{"type":"response.completed","response":{"status":"completed"}}`,
			},
			model.Answer{Items: []model.Item{said("hi")}, Stop: model.StopEnd},
		},
		"a call that no event begins": {
			"openai",
			[]string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"run","arguments":"{\"a\":1}"}}`, `{"type":"response.completed","response":{}}`}, call,
		},
		"input that is whole at once": {
			"anthropic",
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"run","input":{"a":1}}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`,
			}, call,
		},
		"reasoning that is not shown": {
			"anthropic",
			[]string{
				`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"sealed"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"hi"}}`, `{"type":"content_block_stop","index":1}`, `{"type":"message_stop"}`,
			},
			model.Answer{Items: []model.Item{{Reasoning: &model.Thought{State: model.State{Data: "sealed"}}}, said("hi")}, Stop: model.StopEnd},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptedmodel.New(t, scriptedmodel.Turn{Events: c.events})
			got, err := model.Collect(open(t, s.Record(c.p), reach(t), model.DefaultBounds).Generate(t.Context(), hello))
			if err != nil {
				t.Fatal(err)
			}
			if got := plain(got); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %s\nwant %s", text(got), text(c.want))
			}
		})
	}
}

// TestDeltasComeAtOnce reads a delta while the provider still has more to say.
func TestDeltasComeAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p model.Provider) {
		// Of each protocol the first five events have text, and not all of it.
		s := scriptedmodel.New(t, scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Text: []string{"one", "two", "three", "four", "five"}}}, After: 5, Ending: scriptedmodel.EndSilent})
		begun := time.Now()
		for d, err := range open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), hello) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == model.Said {
				break // ends the request, which the server waits for
			}
		}
		s.Close()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestRequests looks at what providers are asked.
func TestRequests(t *testing.T) {
	temperature := 0.5
	ask := func(t *testing.T, p model.Provider, r model.Request, turns int) map[string]any {
		t.Helper()
		s := scriptedmodel.New(t, slices.Repeat([]scriptedmodel.Turn{scriptedmodel.Say("ok")}, turns)...)
		rec := s.Record(p)
		for i := range r.Items { // what this model said before
			if th := r.Items[i].Reasoning; th != nil && th.State.Origin == "own" {
				th.State.Origin = rec.Origin()
			}
		}
		if _, err := model.Collect(open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[0]
		given := got.Header.Get("Authorization")
		if p == "anthropic" {
			given = "Bearer " + got.Header.Get("X-Api-Key")
		}
		if given != "Bearer "+rec.Key {
			t.Errorf("the key is given as %q", given)
		}
		return got.Body
	}
	conversation := func() model.Request {
		return model.Request{
			Instructions: "Be brief.",
			Items: []model.Item{
				model.Text(model.User, "What is 6*7?"),
				{Reasoning: &model.Thought{Text: "Compute.", State: model.State{Origin: "own", ID: "reasoning_content", Data: "signed"}}},
				{Reasoning: &model.Thought{Text: "Of another.", State: model.State{Origin: "another", ID: "x", Data: "theirs"}}},
				{Call: &model.Call{ID: "c1", Name: "run", Arguments: `{"code":"6*7"}`}},
				{Call: &model.Call{ID: "c2", Name: "run", Arguments: `{"code":`}}, // as it was cut
				{Result: &model.Result{CallID: "c1", Parts: []model.Part{{Kind: model.PartText, Text: "42"}}}},
				{Result: &model.Result{CallID: "c2", Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: "no"}, {Kind: model.PartImage, Data: []byte("png"), MediaType: "image/png"}}}},
				{Message: &model.Message{Role: model.User, Parts: []model.Part{{Kind: model.PartText, Text: "And this?"}, {Kind: model.PartFile, Name: "a.pdf", Data: []byte("pdf"), MediaType: "application/pdf"}}}},
			},
			Tools:      []model.Tool{{Name: "run", Description: "Run code.", Parameters: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`), Strict: true}},
			ToolChoice: model.ToolChoice{Mode: model.ToolNamed, Name: "run"}, ParallelToolCalls: new(false), Reasoning: model.Reasoning{Effort: model.EffortHigh, Summary: true},
			MaxOutputTokens: 4000, Temperature: &temperature, Format: &model.Format{Name: "out", Schema: []byte(`{"type":"object"}`), Strict: true}, CacheKey: "k",
		}
	}
	contains := func(t *testing.T, body map[string]any, want ...string) {
		t.Helper()
		got := text(body)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("no %s in\n%s", w, got)
			}
		}
		for _, never := range []string{"theirs", "Of another."} {
			if strings.Contains(got, never) {
				t.Errorf("%s is in\n%s", never, got)
			}
		}
	}
	t.Run("openai", func(t *testing.T) {
		contains(t, ask(t, "openai", conversation(), 1), `"store":false`, `"stream":true`, `"instructions":"Be brief."`, `"max_output_tokens":4000`, `"encrypted_content":"signed"`,
			`"include":["reasoning.encrypted_content"]`, `"effort":"high"`, `"arguments":"{\"code\":\"6*7\"}"`, `"call_id":"c2"`, `"output":"42"`, `data:image/png;base64,cG5n`, `"filename":"a.pdf"`,
			`"tool_choice":{"name":"run","type":"function"}`, `"parallel_tool_calls":false`, `"strict":true`, `"prompt_cache_key":"k"`, `"type":"json_schema"`, `invalid_arguments`)
	})
	t.Run("openai-chat", func(t *testing.T) {
		contains(t, ask(t, "openai-chat", conversation(), 1), `{"content":"Be brief.","role":"system"}`, `"max_tokens":4000`, `"include_usage":true`, `"tool_call_id":"c1"`,
			`data:image/png;base64,cG5n`, `"filename":"a.pdf"`, `"tool_choice":{"function":{"name":"run"},"type":"function"}`, `"parallel_tool_calls":false`, `"reasoning_effort":"high"`, `"json_schema"`, `invalid_arguments`)
	})
	t.Run("anthropic", func(t *testing.T) {
		contains(t, ask(t, "anthropic", conversation(), 1), `"signature":"signed"`, `"thinking":"Compute."`, `"type":"tool_use"`, `"input":{"code":"6*7"}`, `"tool_use_id":"c2"`, `"is_error":true`,
			`"media_type":"image/png"`, `"title":"a.pdf"`, `"max_tokens":4000`, `"tool_choice":{"disable_parallel_tool_use":true,"name":"run","type":"tool"}`, `"cache_control":{"type":"ephemeral"}`, `invalid_arguments`)
	})
	t.Run("without a key", func(t *testing.T) {
		for _, p := range model.Providers() {
			s := scriptedmodel.New(t, scriptedmodel.Say("ok"))
			rec := s.Record(p)
			rec.Key = ""
			t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
			t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
			if _, err := model.Collect(open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), hello)); err != nil {
				t.Fatal(err)
			}
			if h := s.Requests()[0].Header; h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" {
				t.Errorf("%s: the headers are %v", p, h)
			}
		}
	})
	t.Run("what the model cannot do", func(t *testing.T) {
		s := scriptedmodel.New(t)
		rec := s.Record("openai")
		rec.Capabilities = nil
		_, err := model.Collect(open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), conversation()))
		wantFailure(t, err, model.Rejected, "images (vision), no files (files), no tools (tools), no reasoning effort")
	})
}

// TestStop: answers end before a text, which providers are sent as far as they take it.
func TestStop(t *testing.T) {
	each(t, func(t *testing.T, p model.Provider) {
		s := scriptedmodel.New(t, scriptedmodel.Say("one STOP two"))
		r := hello
		r.Stop = []string{"STOP", "\n\n"}
		a, err := model.Collect(open(t, s.Record(p), reach(t), model.DefaultBounds).Generate(t.Context(), r))
		if err != nil || len(a.Items) != 1 || a.Items[0].Message.Parts[0].Text != "one " || a.Stop != model.StopEnd || a.Usage.Output != 5 {
			t.Errorf("%+v, %v", a, err)
		}
		body := s.Requests()[0].Body
		got := map[string]any{"stop": body["stop"], "stop_sequences": body["stop_sequences"]}
		want := map[string]any{"stop": nil, "stop_sequences": nil}
		switch p {
		case "anthropic":
			want["stop_sequences"] = []any{"STOP"}
		case "openai-chat":
			want["stop"] = []any{"STOP", "\n\n"}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the provider is sent %v, want %v", got, want)
		}
	})
}
