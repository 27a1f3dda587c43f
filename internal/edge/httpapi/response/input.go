package response

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// maxItems bounds the items of an input.
const maxItems = 2048

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// decoder reads a part of a request at a path.
func decode(path string, text jsontext.Value, into any) error {
	if err := (wire.Decoder{Noun: path}).Decode(text, into); err != nil {
		return invalid("%s: %s", path, strings.TrimPrefix(err.Error(), path+" "))
	}
	return nil
}

// kindOf reads the type of an item. Messages may leave it out.
func kindOf(text jsontext.Value) (kind, role string) {
	var head struct {
		Type jsontext.Value `json:"type"`
		Role jsontext.Value `json:"role"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", ""
	}
	_ = json.Unmarshal(head.Type, &kind)
	_ = json.Unmarshal(head.Role, &role)
	if kind == "" && role != "" {
		kind = "message"
	}
	return kind, role
}

// input decodes the input of a request.
func (r *reader) input() error {
	input := r.in.Input
	if len(input) == 0 || input.Kind() == 'n' {
		return invalid("input is required: a text, or a list of items")
	}
	if input.Kind() == '"' {
		var text string
		if err := json.Unmarshal(input, &text); err != nil {
			return invalid("input: %s", err)
		}
		if text == "" {
			return invalid("input must not be empty")
		}
		r.Message(model.User, model.Text(model.User, text).Message.Parts)
		return r.EndInput()
	}
	var raw []jsontext.Value
	if input.Kind() != '[' || json.Unmarshal(input, &raw) != nil {
		return invalid("input must be a text, or a list of items")
	}
	if len(raw) == 0 || len(raw) > maxItems {
		return invalid("input must have between 1 and %d items", maxItems)
	}
	for i, text := range raw {
		if err := r.item(fmt.Sprintf("input[%d]", i), text); err != nil {
			return err
		}
	}
	return r.EndInput()
}

// itemKinds are the items that a request may have.
const itemKinds = "message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning, code_interpreter_call, web_search_call, mcp_list_tools, mcp_call, mcp_approval_request, mcp_approval_response, item_reference"

func (r *reader) item(path string, text jsontext.Value) error {
	switch kind, _ := kindOf(text); {
	case kind == "item_reference":
		var in ItemReference
		if err := decode(path, text, &in); err != nil {
			return err
		}
		return r.Refer(path, *in.ID)
	case slices.Contains(serverItems, kind):
		return r.repeated(path, kind, text)
	case slices.Contains(mcpKinds, kind):
		return r.mcpItem(path, kind, text)
	case kind == "message":
		return r.message(path, text)
	case kind == "function_call":
		var in FunctionCallInput
		if err := decode(path, text, &in); err != nil {
			return err
		}
		r.Call(&model.Call{ID: *in.CallID, Name: *in.Name, Arguments: *in.Arguments})
		return nil
	case kind == customCall:
		return r.customCall(path, text)
	case kind == response.FunctionOutput, kind == response.CustomOutput:
		var in FunctionCallOutputInput
		if err := decode(path, text, &in); err != nil {
			return err
		}
		parts, err := readContent(path+".output", in.Output, model.User)
		r.Result(*in.CallID, parts)
		return err
	case kind == "reasoning":
		return r.reasoning(path, text)
	}
	return invalid("%s.type must be one of %s", path, itemKinds)
}

// MessageInput is a message in the input of a request.
type MessageInput struct {
	Type    *string        `json:"type,omitzero" enum:"message"`
	Role    *string        `json:"role" required:"true" enum:"user,assistant,system,developer"`
	Content jsontext.Value `json:"content"`
	ID      *string        `json:"id,omitzero"`
	Status  *string        `json:"status,omitzero"`
	Phase   *string        `json:"phase,omitzero"`
}

// FunctionCallInput is a tool call that a model made earlier.
type FunctionCallInput struct {
	Type      *string `json:"type" required:"true"`
	CallID    *string `json:"call_id" required:"true"`
	Name      *string `json:"name" required:"true"`
	Arguments *string `json:"arguments" required:"true"`
	ID        *string `json:"id,omitzero"`
	Status    *string `json:"status,omitzero"`
}

// FunctionCallOutputInput is the result of a call of a function or custom tool that the client made.
type FunctionCallOutputInput struct {
	Type   *string        `json:"type" required:"true"`
	CallID *string        `json:"call_id" required:"true"`
	Output jsontext.Value `json:"output"`
	ID     *string        `json:"id,omitzero"`
	Name   *string        `json:"name,omitzero"`
	Status *string        `json:"status,omitzero"`
}

// ReasoningInput is reasoning of an earlier answer.
type ReasoningInput struct {
	Type             *string        `json:"type" required:"true"`
	ID               *string        `json:"id,omitzero"`
	Summary          []TextPart     `json:"summary,omitzero"`
	Content          jsontext.Value `json:"content,omitzero"`
	EncryptedContent *string        `json:"encrypted_content,omitzero"`
	Status           *string        `json:"status,omitzero"`
}

// TextPart is a text with its type.
type TextPart struct {
	Type *string `json:"type" required:"true"`
	Text *string `json:"text" required:"true"`
}

func (r *reader) message(path string, text jsontext.Value) error {
	var in MessageInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	role := model.Role(*in.Role)
	parts, err := readContent(path+".content", in.Content, role)
	r.Message(role, parts)
	return err
}

func (r *reader) reasoning(path string, text jsontext.Value) error {
	var in ReasoningInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	var summary []string
	for _, s := range in.Summary {
		summary = append(summary, *s.Text)
	}
	return r.Reason(path, in.EncryptedContent, summary)
}

// ItemReference is an item of an earlier response in the input of a request, which the
// client does not repeat.
type ItemReference struct {
	Type *string `json:"type,omitzero"`
	ID   *string `json:"id" required:"true"`
}

// serverItems are the types of output items that calls of the server's tools are shown
// as.
var serverItems = []string{
	"sandbox_results", "share_file", "sandbox_write_file", "sandbox_read_file", "sandbox_edit_file", "sandbox_grep", "sandbox_glob", "sandbox_apply_patch",
	"code_interpreter_call", response.SearchCall, "search_results", "fetch_url_results", "people_search_results",
}

// repeated decodes a call of a tool of the server, as clients repeat it from an output.
func (r *reader) repeated(path, kind string, text jsontext.Value) error {
	var in struct {
		ID       string `json:"id"`
		CallID   string `json:"call_id"`
		Language string `json:"language"`
		Code     string `json:"code"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return invalid("an item of type %s has an id, call_id, language or code that is no text", kind)
	}
	if ok, err := r.Repeat(in.ID); ok || err != nil {
		return err
	}
	switch kind {
	case response.SearchCall:
		return nil // it does not say what was found
	case "code_interpreter_call":
		return r.interpreterCall(path, text)
	}
	return r.ServerCall(&response.ServerCall{Kind: kind, ID: in.ID, CallID: in.CallID, Language: in.Language, Code: in.Code, Shown: text})
}

// ContentPart is a part of a message or of a tool's output, of any type.
type ContentPart struct {
	Type        *string        `json:"type" required:"true"`
	Text        *string        `json:"text,omitzero"`
	Refusal     *string        `json:"refusal,omitzero"`
	ImageURL    *string        `json:"image_url,omitzero"`
	Detail      *string        `json:"detail,omitzero" enum:"low,high,auto"`
	FileName    *string        `json:"filename,omitzero"`
	FileData    *string        `json:"file_data,omitzero"`
	FileURL     *string        `json:"file_url,omitzero"`
	Annotations jsontext.Value `json:"annotations,omitzero"`
	LogProbs    jsontext.Value `json:"logprobs,omitzero"`
}

func readContent(path string, content jsontext.Value, role model.Role) ([]model.Part, error) {
	switch content.Kind() {
	case '"':
		var text string
		if err := json.Unmarshal(content, &text); err != nil {
			return nil, invalid("%s: %s", path, err)
		}
		return []model.Part{{Kind: model.PartText, Text: text}}, nil
	case '[':
	default:
		return nil, invalid("%s must be a text, or a list of parts", path)
	}
	var raw []jsontext.Value
	if err := json.Unmarshal(content, &raw); err != nil {
		return nil, invalid("%s must be a text, or a list of parts", path)
	}
	parts := make([]model.Part, 0, len(raw))
	for i, text := range raw {
		var in ContentPart
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := decode(at, text, &in); err != nil {
			return nil, err
		}
		given := response.Part{
			Type: *in.Type, Text: in.Text, Refusal: in.Refusal, ImageURL: in.ImageURL, Detail: in.Detail, FileName: in.FileName, FileData: in.FileData, FileURL: in.FileURL,
		}
		part, err := given.Model(at, role)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
