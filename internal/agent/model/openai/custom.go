package openai

import (
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/atoll-run/atoll/internal/core/model"
)

// isCustom reports whether a request's tool choice names a custom tool.
func isCustom(r *model.Request) bool {
	return slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Custom != nil && t.Name == r.ToolChoice.Name })
}

// customCalls returns the ids of a conversation's custom calls, because OpenAI gives their results a
// separate type.
func customCalls(items []model.Item) map[string]bool {
	var out map[string]bool
	for i := range items {
		c := items[i].Call
		switch {
		case c == nil:
		case c.Custom:
			if out == nil {
				out = map[string]bool{}
			}
			out[c.ID] = true
		default: // the provider used the id twice
			delete(out, c.ID)
		}
	}
	return out
}

func customTool(t *model.Tool) *responses.CustomToolParam {
	out := &responses.CustomToolParam{Name: t.Name}
	if t.Description != "" {
		out.Description = param.NewOpt(t.Description)
	}
	if t.Custom.Grammar != "" {
		out.Format.OfGrammar = &shared.CustomToolInputFormatGrammarParam{Definition: t.Custom.Grammar, Syntax: string(t.Custom.Syntax)}
	}
	return out
}

// customResult converts the result of a custom call. It overrides the SDK's list type: the list is a
// separate type with the same parts as in other results.
func customResult(r *model.Result) responses.ResponseInputItemUnionParam {
	out := &responses.ResponseCustomToolCallOutputParam{CallID: r.CallID}
	same := result(r).OfFunctionCallOutput.Output
	out.Output.OfString = same.OfString
	if same.OfResponseFunctionCallOutputItemArray != nil {
		out.Output = param.Override[responses.ResponseCustomToolCallOutputOutputUnionParam](same.OfResponseFunctionCallOutputItemArray)
	}
	return responses.ResponseInputItemUnionParam{OfCustomToolCallOutput: out}
}

func chatCustomTool(t *model.Tool) *sdk.ChatCompletionCustomToolParam {
	out := &sdk.ChatCompletionCustomToolParam{Custom: sdk.ChatCompletionCustomToolCustomParam{Name: t.Name}}
	if t.Description != "" {
		out.Custom.Description = param.NewOpt(t.Description)
	}
	if t.Custom.Grammar != "" {
		out.Custom.Format.OfGrammar = &sdk.ChatCompletionCustomToolCustomFormatGrammarParam{
			Grammar: sdk.ChatCompletionCustomToolCustomFormatGrammarGrammarParam{Definition: t.Custom.Grammar, Syntax: string(t.Custom.Syntax)},
		}
	}
	return out
}

func chatCustomCall(c *model.Call) sdk.ChatCompletionMessageToolCallUnionParam {
	return sdk.ChatCompletionMessageToolCallUnionParam{OfCustom: &sdk.ChatCompletionMessageCustomToolCallParam{
		ID: c.ID, Custom: sdk.ChatCompletionMessageCustomToolCallCustomParam{Name: c.Name, Input: c.Arguments},
	}}
}
