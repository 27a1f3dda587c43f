package adapter_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// patch is a text that JSON has to escape.
const patch = "*** Begin\n+\"<ü\"\n*** End"

func patches() model.Request {
	return model.Request{
		Items: []model.Item{
			model.Text(model.User, "patch"),
			{Call: &model.Call{ID: "c1", Name: "apply_patch", Arguments: patch, Custom: true}},
			{Result: &model.Result{CallID: "c1", Parts: []model.Part{{Kind: model.PartText, Text: "applied"}}}},
		},
		Tools: []model.Tool{
			{Name: "apply_patch", Description: "Edit files.", Custom: &model.FreeText{Syntax: model.SyntaxLark, Grammar: `start: "x"`}},
			{Name: "note", Custom: &model.FreeText{}},
			{Name: "run", Parameters: []byte(`{"type":"object"}`)},
		},
		ToolChoice: model.ToolChoice{Mode: model.ToolNamed, Name: "apply_patch"},
	}
}

// native reports whether a provider takes custom tools of a model that can use them.
func native(p model.Provider) bool { return p != "anthropic" }

// TestCustomTools: calls with free text are the same whether a provider knows such tools or
// gets functions in their place.
func TestCustomTools(t *testing.T) {
	want := func(arguments string) model.Answer {
		return model.Answer{Items: []model.Item{
			{Call: &model.Call{ID: "c2", Name: "apply_patch", Arguments: arguments, Custom: true}}, called("c3", "run", `{"input":"{}"}`),
		}, Stop: model.StopToolCalls}
	}
	each(t, func(t *testing.T, p model.Provider) {
		for _, can := range []bool{true, false} {
			function := !can || !native(p)
			for _, c := range []struct {
				pieces []string
				text   string
			}{
				{[]string{`{"inp`, `ut": "*** Begin\n+\"`, `<\u00fc\"\n*** End"}`}, patch},
				{[]string{`{}`}, ""},
				{[]string{`not JSON`}, "not JSON"},
				{[]string{`{"input": 1}`}, `{"input": 1}`},
			} {
				custom := scriptedmodel.Call{ID: "c2", Name: "apply_patch", Arguments: c.pieces}
				if !function {
					custom.Custom, custom.Arguments = true, strings.SplitAfter(c.text, "+")
				}
				s := scriptedmodel.New(t, scriptedmodel.Turn{Blocks: []scriptedmodel.Block{{Call: &custom}, {Call: &scriptedmodel.Call{ID: "c3", Name: "run", Arguments: []string{`{"input":"{}"}`}}}}})
				rec := s.Record(p)
				if !can {
					rec.Capabilities = model.DefaultCapabilities
				}
				var f model.Fold
				pieces, first := "", -1
				for d, err := range open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), patches()) {
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case d.Kind == model.CallBegun && first < 0:
						first = d.Index
					case d.Kind == model.CallArguments && d.Index == first:
						pieces += d.Text
					}
					f.Add(d)
				}
				if got := plain(f.Answer()); !reflect.DeepEqual(got, want(c.text)) {
					t.Errorf("function %v: got %s\nwant %s", function, text(got), text(want(c.text)))
				}
				if c.text == patch && pieces != patch {
					t.Errorf("function %v: %q came in pieces", function, pieces)
				}
			}
		}
	})
}

// TestCustomToolRequests looks at what providers are asked about such tools.
func TestCustomToolRequests(t *testing.T) {
	const wrapped = `"{\"input\":\"*** Begin\\n+\\\"<ü\\\"\\n*** End\"}"`
	for _, c := range []struct {
		p    model.Provider
		can  []model.Capability
		want []string
	}{
		{"openai", model.Capabilities, []string{
			`{"description":"Edit files.","format":{"definition":"start: \"x\"","syntax":"lark","type":"grammar"},"name":"apply_patch","type":"custom"}`, `{"name":"note","type":"custom"}`,
			`"tool_choice":{"name":"apply_patch","type":"custom"}`, `{"call_id":"c1","input":"*** Begin`, `{"call_id":"c1","output":"applied","type":"custom_tool_call_output"}`,
		}},
		{"openai", model.DefaultCapabilities, []string{
			`"description":"Edit files.\n\nThe input must match this Lark grammar:\nstart: \"x\"","name":"apply_patch"`, `"required":["input"]`,
			`"tool_choice":{"name":"apply_patch","type":"function"}`, `"arguments":` + wrapped, `"type":"function_call_output"`,
		}},
		{"openai-chat", model.Capabilities, []string{
			`{"custom":{"description":"Edit files.","format":{"grammar":{"definition":"start: \"x\"","syntax":"lark"},"type":"grammar"},"name":"apply_patch"},"type":"custom"}`,
			`"tool_choice":{"custom":{"name":"apply_patch"},"type":"custom"}`, `{"custom":{"input":"*** Begin`, `"tool_call_id":"c1"`,
		}},
		{"openai-chat", model.DefaultCapabilities, []string{`"tool_choice":{"function":{"name":"apply_patch"},"type":"function"}`, `"arguments":` + wrapped, `Lark grammar`}},
		{"anthropic", model.Capabilities, []string{`"input":{"input":"*** Begin`, `"tool_use_id":"c1"`, `Lark grammar`, `"required":["input"]`}},
	} {
		s := scriptedmodel.New(t, scriptedmodel.Say("ok"))
		rec := s.Record(c.p)
		rec.Capabilities = c.can
		if _, err := model.Collect(open(t, rec, reach(t), model.DefaultBounds).Generate(t.Context(), patches())); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(text(s.Requests()[0].Body), `\u003c`, "<")
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s, native %v: no %s in\n%s", c.p, slices.Contains(c.can, model.CustomTools), w, got)
			}
		}
	}
}

// TestCustomResultWithImages: the result of a custom call has the parts that others have.
func TestCustomResultWithImages(t *testing.T) {
	s := scriptedmodel.New(t, scriptedmodel.Say("ok"))
	r := patches()
	r.Items[2].Result.Parts = append(r.Items[2].Result.Parts, model.Part{Kind: model.PartImage, Data: []byte("png"), MediaType: "image/png"})
	if _, err := model.Collect(open(t, s.Record("openai"), reach(t), model.DefaultBounds).Generate(t.Context(), r)); err != nil {
		t.Fatal(err)
	}
	const want = `{"call_id":"c1","output":[{"text":"applied","type":"input_text"},{"image_url":"data:image/png;base64,cG5n","type":"input_image"}],"type":"custom_tool_call_output"}`
	if got := text(s.Requests()[0].Body); !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}
