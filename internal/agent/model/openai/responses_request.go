package openai

import (
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/core/model"
)

// params is a request as the Responses protocol has it.
func (m *Responses) params(r *model.Request) (out sdk.ResponseNewParams, err error) {
	out.Model = m.rec.Upstream
	out.Store = param.NewOpt(false)
	if r.Instructions != "" {
		out.Instructions = param.NewOpt(r.Instructions)
	}
	if r.MaxOutputTokens > 0 {
		out.MaxOutputTokens = param.NewOpt(int64(r.MaxOutputTokens))
	}
	if r.Temperature != nil {
		out.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.TopP != nil {
		out.TopP = param.NewOpt(*r.TopP)
	}
	if r.CacheKey != "" {
		out.PromptCacheKey = param.NewOpt(r.CacheKey)
	}
	if len(r.Metadata) > 0 {
		out.Metadata = r.Metadata
	}
	if m.rec.Can(model.CanReason) { // models that do not reason refuse both
		out.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
		out.Reasoning.Effort = shared.ReasoningEffort(r.Reasoning.Effort)
		if r.Reasoning.Summary {
			out.Reasoning.Summary = shared.ReasoningSummaryAuto
		}
	}
	if f := r.Format; f != nil {
		s, err := transport.Schema(f.Schema)
		if err != nil {
			return out, err
		}
		js := &sdk.ResponseFormatTextJSONSchemaConfigParam{Name: f.Name, Schema: s, Strict: param.NewOpt(f.Strict)}
		if f.Description != "" {
			js.Description = param.NewOpt(f.Description)
		}
		out.Text.Format.OfJSONSchema = js
	}
	if err := responseTools(r, &out); err != nil {
		return out, err
	}
	custom := customCalls(r.Items)
	for i := range r.Items {
		if res := r.Items[i].Result; res != nil && custom[res.CallID] {
			out.Input.OfInputItemList = append(out.Input.OfInputItemList, customResult(res))
			continue
		}
		if it, ok := m.input(&r.Items[i]); ok {
			out.Input.OfInputItemList = append(out.Input.OfInputItemList, it)
		}
	}
	return out, nil
}

func responseTools(r *model.Request, out *sdk.ResponseNewParams) error {
	for _, t := range r.Tools {
		if t.Custom != nil {
			out.Tools = append(out.Tools, sdk.ToolUnionParam{OfCustom: customTool(&t)})
			continue
		}
		s, err := transport.Schema(t.Parameters)
		if err != nil {
			return err
		}
		f := &sdk.FunctionToolParam{Name: t.Name, Parameters: s, Strict: param.NewOpt(t.Strict)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfFunction: f})
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
			out.ToolChoice.OfCustomTool = &sdk.ToolChoiceCustomParam{Name: r.ToolChoice.Name}
			break
		}
		out.ToolChoice.OfFunctionTool = &sdk.ToolChoiceFunctionParam{Name: r.ToolChoice.Name}
	default:
		out.ToolChoice.OfToolChoiceMode = param.NewOpt(sdk.ToolChoiceOptions(r.ToolChoice.Mode))
	}
	return nil
}

// input is an item of a conversation; none for reasoning of another model.
func (m *Responses) input(it *model.Item) (out sdk.ResponseInputItemUnionParam, ok bool) {
	switch {
	case it.Call != nil && it.Call.Custom:
		return sdk.ResponseInputItemParamOfCustomToolCall(it.Call.ID, it.Call.Arguments, it.Call.Name), true
	case it.Call != nil:
		return sdk.ResponseInputItemParamOfFunctionCall(valid(it.Call.Arguments), it.Call.ID, it.Call.Name), true
	case it.Result != nil:
		return result(it.Result), true
	case it.Reasoning != nil:
		t := it.Reasoning
		if t.State.Origin != m.rec.Origin() || t.State.Data == "" {
			return out, false
		}
		summary := make([]sdk.ResponseReasoningItemSummaryParam, len(t.Summary))
		for i, text := range t.Summary {
			summary[i].Text = text
		}
		out = sdk.ResponseInputItemParamOfReasoning(t.State.ID, summary)
		out.OfReasoning.EncryptedContent = param.NewOpt(t.State.Data)
		return out, true
	case it.Message != nil:
		return message(it.Message), true
	}
	return out, false
}

func message(m *model.Message) sdk.ResponseInputItemUnionParam {
	role := sdk.EasyInputMessageRole(m.Role)
	if m.Role == model.Assistant { // whose text has another type, which a plain text need not name
		return sdk.ResponseInputItemParamOfMessage(textOf(m.Parts), role)
	}
	var parts sdk.ResponseInputMessageContentListParam
	for _, p := range m.Parts {
		switch p.Kind {
		case model.PartImage:
			image := sdk.ResponseInputContentParamOfInputImage(sdk.ResponseInputImageDetail(detail(p)))
			image.OfInputImage.ImageURL = param.NewOpt(dataURL(p))
			parts = append(parts, image)
		case model.PartFile:
			f := &sdk.ResponseInputFileParam{}
			if p.URL != "" {
				f.FileURL = param.NewOpt(p.URL)
			} else {
				f.FileData, f.Filename = param.NewOpt(dataURL(p)), param.NewOpt(fileName(p))
			}
			parts = append(parts, sdk.ResponseInputContentUnionParam{OfInputFile: f})
		default:
			parts = append(parts, sdk.ResponseInputContentParamOfInputText(p.Text))
		}
	}
	return sdk.ResponseInputItemParamOfMessage(parts, role)
}

func detail(p model.Part) string {
	if p.Detail == "" {
		return "auto"
	}
	return p.Detail
}

// fileName is required beside the bytes of a file.
func fileName(p model.Part) string {
	if p.Name == "" {
		return "file"
	}
	return p.Name
}

func result(r *model.Result) sdk.ResponseInputItemUnionParam {
	out := &sdk.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(r.CallID)}
	plain := true
	for _, p := range r.Parts {
		plain = plain && p.Kind != model.PartImage && p.Kind != model.PartFile
	}
	if plain {
		out.Output.OfString = param.NewOpt(textOf(r.Parts))
		return sdk.ResponseInputItemUnionParam{OfFunctionCallOutput: out}
	}
	var parts sdk.ResponseFunctionCallOutputItemListParam
	for _, p := range r.Parts {
		switch p.Kind {
		case model.PartImage:
			parts = append(parts, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &sdk.ResponseInputImageContentParam{ImageURL: param.NewOpt(dataURL(p))}})
		case model.PartFile:
			f := &sdk.ResponseInputFileContentParam{}
			if p.URL != "" {
				f.FileURL = param.NewOpt(p.URL)
			} else {
				f.FileData, f.Filename = param.NewOpt(dataURL(p)), param.NewOpt(fileName(p))
			}
			parts = append(parts, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputFile: f})
		default:
			parts = append(parts, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputText: &sdk.ResponseInputTextContentParam{Text: p.Text}})
		}
	}
	out.Output.OfResponseFunctionCallOutputItemArray = parts
	return sdk.ResponseInputItemUnionParam{OfFunctionCallOutput: out}
}
