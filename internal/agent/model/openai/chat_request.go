package openai

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// maxStop is how many texts the protocol takes to stop at.
const maxStop = 4

// params is a request as Chat Completions has it. What servers of other makers do not know
// is sent only where the request asks for it.
func (c *Chat) params(r *model.Request) (out sdk.ChatCompletionNewParams, err error) {
	out.Model = c.rec.Upstream
	out.StreamOptions.IncludeUsage = param.NewOpt(true)
	if r.MaxOutputTokens > 0 {
		// OpenAI's models that reason refuse max_tokens; servers of other makers know it alone.
		if c.official() {
			out.MaxCompletionTokens = param.NewOpt(int64(r.MaxOutputTokens))
		} else {
			out.MaxTokens = param.NewOpt(int64(r.MaxOutputTokens))
		}
	}
	if r.Temperature != nil {
		out.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.TopP != nil {
		out.TopP = param.NewOpt(*r.TopP)
	}
	if n := min(len(r.Stop), maxStop); n > 0 && !(c.official() && c.rec.Can(model.CanReason)) { // those refuse it
		out.Stop.OfStringArray = r.Stop[:n]
	}
	if r.CacheKey != "" && c.official() {
		out.PromptCacheKey = param.NewOpt(r.CacheKey)
	}
	out.ReasoningEffort = shared.ReasoningEffort(r.Reasoning.Effort)
	if f := r.Format; f != nil {
		s, err := transport.Schema(f.Schema)
		if err != nil {
			return out, err
		}
		js := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.Name, Schema: s, Strict: param.NewOpt(f.Strict)}
		if f.Description != "" {
			js.Description = param.NewOpt(f.Description)
		}
		out.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: js}
	}
	if err := c.tools(r, &out); err != nil {
		return out, err
	}
	out.Messages, err = c.messages(r)
	return out, err
}

// official reports whether the server is OpenAI's own.
func (c *Chat) official() bool {
	u, err := url.Parse(c.rec.BaseURL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}

func (c *Chat) tools(r *model.Request, out *sdk.ChatCompletionNewParams) error {
	for _, t := range r.Tools {
		if t.Custom != nil {
			out.Tools = append(out.Tools, sdk.ChatCompletionToolUnionParam{OfCustom: chatCustomTool(&t)})
			continue
		}
		s, err := transport.Schema(t.Parameters)
		if err != nil {
			return err
		}
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: s}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		if t.Strict {
			f.Strict = param.NewOpt(true)
		}
		out.Tools = append(out.Tools, sdk.ChatCompletionToolUnionParam{OfFunction: &sdk.ChatCompletionFunctionToolParam{Function: f}})
	}
	if len(r.Tools) == 0 {
		return nil
	}
	if r.ParallelToolCalls != nil {
		out.ParallelToolCalls = param.NewOpt(*r.ParallelToolCalls)
	}
	switch r.ToolChoice.Mode {
	case "", model.ToolAuto:
	case model.ToolNamed:
		if isCustom(r) {
			out.ToolChoice.OfCustomToolChoice = &sdk.ChatCompletionNamedToolChoiceCustomParam{Custom: sdk.ChatCompletionNamedToolChoiceCustomCustomParam{Name: r.ToolChoice.Name}}
			break
		}
		out.ToolChoice.OfFunctionToolChoice = &sdk.ChatCompletionNamedToolChoiceParam{Function: sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: r.ToolChoice.Name}}
	default:
		out.ToolChoice.OfAuto = param.NewOpt(string(r.ToolChoice.Mode))
	}
	return nil
}

// messages is a conversation as this protocol has it: what the model said and called
// between two turns of others is one message.
func (c *Chat) messages(r *model.Request) ([]sdk.ChatCompletionMessageParamUnion, error) {
	var out []sdk.ChatCompletionMessageParamUnion
	if r.Instructions != "" {
		out = append(out, sdk.SystemMessage(r.Instructions))
	}
	// Reasoning is given back within a turn alone: some refuse that of earlier ones.
	turn := 0
	for i, it := range r.Items {
		if it.Message != nil && it.Message.Role == model.User {
			turn = i
		}
	}
	var own *sdk.ChatCompletionAssistantMessageParam
	var thought *model.Thought
	var shown []model.Part // images of results, which results cannot have
	flush := func() {
		if own != nil {
			if thought != nil {
				own.SetExtraFields(map[string]any{thought.State.ID: thought.Text})
			}
			out = append(out, sdk.ChatCompletionMessageParamUnion{OfAssistant: own})
		}
		own, thought = nil, nil
	}
	assistant := func() *sdk.ChatCompletionAssistantMessageParam {
		if own == nil {
			own = &sdk.ChatCompletionAssistantMessageParam{}
		}
		return own
	}
	show := func() {
		if len(shown) > 0 {
			out = append(out, userMessage(shown))
			shown = nil
		}
	}
	for i, it := range r.Items {
		if it.Result == nil {
			show()
		}
		switch {
		case it.Reasoning != nil:
			if own != nil && len(own.ToolCalls) > 0 {
				flush()
			}
			if i > turn && it.Reasoning.State.Origin == c.rec.Origin() && it.Reasoning.State.ID != "" {
				thought = it.Reasoning
			}
		case it.Call != nil && it.Call.Custom:
			m := assistant()
			m.ToolCalls = append(m.ToolCalls, chatCustomCall(it.Call))
		case it.Call != nil:
			call := &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: it.Call.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: it.Call.Name, Arguments: valid(it.Call.Arguments)},
			}
			if s := it.Call.State; s.Origin == c.rec.Origin() && s.Data != "" {
				call.SetExtraFields(map[string]any{"extra_content": json.RawMessage(s.Data)})
			}
			m := assistant()
			m.ToolCalls = append(m.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
		case it.Result != nil:
			flush()
			text := textOf(it.Result.Parts)
			for _, p := range it.Result.Parts {
				if p.Kind == model.PartImage || p.Kind == model.PartFile {
					shown = append(shown, p)
				}
			}
			out = append(out, sdk.ToolMessage(text, it.Result.CallID))
		case it.Message == nil:
		case it.Message.Role == model.Assistant:
			if own != nil && len(own.ToolCalls) > 0 {
				flush()
			}
			m := assistant()
			said := m.Content.OfString.Value
			if said != "" {
				said += "\n"
			}
			m.Content.OfString = param.NewOpt(said + textOf(it.Message.Parts))
		case it.Message.Role == model.User:
			flush()
			out = append(out, userMessage(it.Message.Parts))
		default:
			flush()
			out = append(out, sdk.SystemMessage(textOf(it.Message.Parts)))
		}
	}
	flush()
	show()
	return out, nil
}

// valid is arguments that are JSON: some servers fail on others.
func valid(arguments string) string {
	if json.Valid([]byte(arguments)) {
		return arguments
	}
	text, _ := json.Marshal(map[string]string{"invalid_arguments": arguments}) // a text always can be
	return string(text)
}

func userMessage(parts []model.Part) sdk.ChatCompletionMessageParamUnion {
	if !slices.ContainsFunc(parts, func(p model.Part) bool { return p.Kind != model.PartText }) {
		return sdk.UserMessage(textOf(parts))
	}
	var out []sdk.ChatCompletionContentPartUnionParam
	for _, p := range parts {
		switch p.Kind {
		case model.PartImage:
			out = append(out, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL(p), Detail: p.Detail}))
		case model.PartFile:
			f := sdk.ChatCompletionContentPartFileFileParam{FileData: param.NewOpt(dataURL(p))}
			if p.Name != "" {
				f.Filename = param.NewOpt(p.Name)
			}
			out = append(out, sdk.FileContentPart(f))
		default:
			out = append(out, sdk.TextContentPart(p.Text))
		}
	}
	return sdk.UserMessage(out)
}
