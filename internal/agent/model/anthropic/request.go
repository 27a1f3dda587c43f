package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// defaultMaxTokens is what an answer may have where nothing says it: the protocol wants a
// number, and every model in service takes this one.
const defaultMaxTokens = 8192

// params is a request as the Messages protocol has it.
func (m *Messages) params(r *model.Request) (out sdk.MessageNewParams, err error) {
	out.Model = m.rec.Upstream
	out.MaxTokens = int64(r.MaxOutputTokens)
	if out.MaxTokens == 0 {
		out.MaxTokens = int64(m.rec.MaxOutput)
	}
	if out.MaxTokens == 0 {
		out.MaxTokens = defaultMaxTokens
	}
	if r.Temperature != nil {
		out.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.TopP != nil {
		out.TopP = param.NewOpt(*r.TopP)
	}
	for _, s := range r.Stop {
		if strings.TrimSpace(s) != "" { // the protocol takes no other
			out.StopSequences = append(out.StopSequences, s)
		}
	}
	if user := r.Metadata["user_id"]; user != "" { // all that this protocol takes
		out.Metadata.UserID = param.NewOpt(user)
	}
	m.think(r, &out)
	if r.Format != nil {
		s, err := transport.Schema(r.Format.Schema)
		if err != nil {
			return out, err
		}
		out.OutputConfig.Format.Schema = s
	}
	if err := tools(r, &out); err != nil {
		return out, err
	}
	if r.Instructions != "" {
		out.System = append(out.System, sdk.TextBlockParam{Text: r.Instructions})
	}
	for i := range r.Items {
		m.add(&out, &r.Items[i])
	}
	if r.CacheKey != "" { // to the end of what is there, and what comes before the conversation
		out.CacheControl = sdk.NewCacheControlEphemeralParam()
		if n := len(out.System); n > 0 {
			out.System[n-1].CacheControl = sdk.NewCacheControlEphemeralParam()
		}
	}
	return out, nil
}

// budgeted are the models that take a number of tokens for thinking, and no effort.
var budgeted = regexp.MustCompile(`claude-3|-4-0|-4-1|-4-5|claude-(opus|sonnet)-4-2025`)

// budgets are numbers of tokens for efforts.
var budgets = map[model.Effort]int64{
	model.EffortMinimal: 1024, model.EffortLow: 2048, model.EffortMedium: 8192, model.EffortHigh: 16384, model.EffortXHigh: 32768,
}

// minBudget is the least that the protocol takes.
const minBudget = 1024

func (m *Messages) think(r *model.Request, out *sdk.MessageNewParams) {
	effort := r.Reasoning.Effort
	switch {
	case effort == "":
	case effort == model.EffortNone:
		out.Thinking.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	case budgeted.MatchString(m.rec.Upstream):
		// It is part of max_tokens, and an answer must have room beside it.
		if n := min(budgets[effort], out.MaxTokens/2); n >= minBudget {
			out.Thinking = sdk.ThinkingConfigParamOfEnabled(n)
		}
	default:
		out.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		if r.Reasoning.Summary {
			out.Thinking.OfAdaptive.Display = sdk.ThinkingConfigAdaptiveDisplaySummarized
		}
		if effort == model.EffortMinimal {
			effort = model.EffortLow
		}
		out.OutputConfig.Effort = sdk.OutputConfigEffort(effort)
	}
}

func tools(r *model.Request, out *sdk.MessageNewParams) error {
	for _, t := range r.Tools {
		s, err := transport.Schema(t.Parameters)
		if err != nil {
			return err
		}
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](s)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		if t.Strict {
			tool.Strict = param.NewOpt(true)
		}
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	if len(r.Tools) == 0 {
		return nil
	}
	one := param.Opt[bool]{}
	if r.ParallelToolCalls != nil {
		one = param.NewOpt(!*r.ParallelToolCalls)
	}
	switch r.ToolChoice.Mode {
	case model.ToolNone:
		out.ToolChoice.OfNone = &sdk.ToolChoiceNoneParam{}
	case model.ToolRequired:
		out.ToolChoice.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: one}
	case model.ToolNamed:
		out.ToolChoice.OfTool = &sdk.ToolChoiceToolParam{Name: r.ToolChoice.Name, DisableParallelToolUse: one}
	default:
		if r.ParallelToolCalls != nil {
			out.ToolChoice.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: one}
		}
	}
	return nil
}

// add adds an item to the conversation, in which turns alternate: what follows from the
// same side is part of its turn.
func (m *Messages) add(out *sdk.MessageNewParams, it *model.Item) {
	role, blocks := sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion(nil)
	switch {
	case it.Call != nil:
		role = sdk.MessageParamRoleAssistant
		blocks = append(blocks, sdk.NewToolUseBlock(it.Call.ID, arguments(it.Call.Arguments), it.Call.Name))
	case it.Result != nil:
		blocks = append(blocks, result(it.Result))
	case it.Reasoning != nil:
		t := it.Reasoning
		role = sdk.MessageParamRoleAssistant
		switch {
		case t.State.Origin != m.rec.Origin() || t.State.Data == "":
		case t.State.ID == redacted:
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(t.State.Data))
		default:
			blocks = append(blocks, sdk.NewThinkingBlock(t.State.Data, t.Text))
		}
	case it.Message == nil:
	case it.Message.Role == model.System, it.Message.Role == model.Developer:
		for _, p := range it.Message.Parts {
			if strings.TrimSpace(p.Text) != "" {
				out.System = append(out.System, sdk.TextBlockParam{Text: p.Text})
			}
		}
	default:
		if it.Message.Role == model.Assistant {
			role = sdk.MessageParamRoleAssistant
		}
		for _, p := range it.Message.Parts {
			if b, ok := content(p); ok {
				blocks = append(blocks, b)
			}
		}
	}
	if len(blocks) == 0 {
		return
	}
	if n := len(out.Messages); n > 0 && out.Messages[n-1].Role == role {
		out.Messages[n-1].Content = append(out.Messages[n-1].Content, blocks...)
		return
	}
	out.Messages = append(out.Messages, sdk.MessageParam{Role: role, Content: blocks})
}

// arguments are a call's arguments as an object, which they must be.
func arguments(text string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	return map[string]string{"invalid_arguments": text}
}

// content is a part of a message; none for an empty text, which is refused.
func content(p model.Part) (out sdk.ContentBlockParamUnion, ok bool) {
	switch p.Kind {
	case model.PartImage:
		return sdk.ContentBlockParamUnion{OfImage: image(p)}, true
	case model.PartFile:
		return sdk.ContentBlockParamUnion{OfDocument: document(p)}, true
	}
	if strings.TrimSpace(p.Text) == "" {
		return out, false
	}
	return sdk.NewTextBlock(p.Text), true
}

func image(p model.Part) *sdk.ImageBlockParam {
	out := &sdk.ImageBlockParam{}
	if media, data, ok := inline(p); ok {
		out.Source.OfBase64 = &sdk.Base64ImageSourceParam{MediaType: sdk.Base64ImageSourceMediaType(media), Data: data}
	} else {
		out.Source.OfURL = &sdk.URLImageSourceParam{URL: p.URL}
	}
	return out
}

func document(p model.Part) *sdk.DocumentBlockParam {
	out := &sdk.DocumentBlockParam{}
	if p.Name != "" {
		out.Title = param.NewOpt(p.Name)
	}
	media, data, ok := inline(p)
	switch {
	case !ok:
		out.Source.OfURL = &sdk.URLPDFSourceParam{URL: p.URL}
	case strings.HasPrefix(media, "text/"):
		text, _ := base64.StdEncoding.DecodeString(data) // what is none is an empty text, which the provider refuses
		out.Source.OfText = &sdk.PlainTextSourceParam{Data: strings.ToValidUTF8(string(text), "\uFFFD")}
	default:
		out.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: data}
	}
	return out
}

// inline is what a part has in itself, as bytes or as a data URL.
func inline(p model.Part) (media, data string, ok bool) {
	if p.URL == "" {
		return p.MediaType, base64.StdEncoding.EncodeToString(p.Data), true
	}
	head, data, ok := strings.Cut(p.URL, ";base64,")
	media, isData := strings.CutPrefix(head, "data:")
	return media, data, ok && isData
}

func result(r *model.Result) sdk.ContentBlockParamUnion {
	out := &sdk.ToolResultBlockParam{ToolUseID: r.CallID}
	if r.Failed {
		out.IsError = param.NewOpt(true)
	}
	for _, p := range r.Parts {
		switch p.Kind {
		case model.PartImage:
			out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image(p)})
		case model.PartFile:
			out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfDocument: document(p)})
		default:
			if p.Text != "" {
				out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: p.Text}})
			}
		}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: out}
}
