package response

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
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

// parser reads requests of a tenant.
type parser struct {
	ctx    context.Context
	tenant tenant.ID
	seal   Sealer
	find   func(id string) ([]model.Item, error) // an item of an output, as it is in its conversation
	web    *web.Service
	mcp    *mcptool.Tools

	servers   []mcptool.Server    // of tools of type mcp
	lists     []mcptool.Known     // that the client carries
	approvals []response.Approval // that the client gives
	asked     []string            // ids of items that asked for approvals, which the client carries
	settled   []string            // those of them whose calls were made
	env       *tenant.Environment // of the key
}

// input reads the input of a request.
func (p *parser) input(input jsontext.Value) (items []model.Item, err error) {
	if len(input) == 0 || input.Kind() == 'n' {
		return nil, invalid("input is required: a text, or a list of items")
	}
	if input.Kind() == '"' {
		var text string
		if err := json.Unmarshal(input, &text); err != nil {
			return nil, invalid("input: %s", err)
		}
		if text == "" {
			return nil, invalid("input must not be empty")
		}
		return []model.Item{model.Text(model.User, text)}, nil
	}
	var raw []jsontext.Value
	if input.Kind() != '[' || json.Unmarshal(input, &raw) != nil {
		return nil, invalid("input must be a text, or a list of items")
	}
	if len(raw) == 0 || len(raw) > maxItems {
		return nil, invalid("input must have between 1 and %d items", maxItems)
	}
	for i, text := range raw {
		path := fmt.Sprintf("input[%d]", i)
		if stands, ok, err := p.references(path, text); ok {
			if err != nil {
				return nil, err
			}
			items = append(items, stands...)
			continue
		}
		if kind, _ := kindOf(text); slices.Contains(mcpKinds, kind) {
			more, err := p.mcpItem(path, kind, text)
			if err != nil {
				return nil, err
			}
			items = append(items, more...)
			continue
		}
		it, err := p.item(path, text)
		if err != nil {
			return nil, err
		}
		if it != nil {
			items = append(items, *it)
		}
	}
	return p.settle(items), nil
}

// itemKinds are the items that a request may have.
const itemKinds = "message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning, code_interpreter_call, web_search_call, mcp_list_tools, mcp_call, mcp_approval_request, mcp_approval_response, item_reference"

func (p *parser) item(path string, text jsontext.Value) (*model.Item, error) {
	switch kind, _ := kindOf(text); kind {
	case "message":
		return parseMessage(path, text)
	case "function_call":
		var in FunctionCallInput
		if err := decode(path, text, &in); err != nil {
			return nil, err
		}
		return &model.Item{Call: &model.Call{ID: *in.CallID, Name: *in.Name, Arguments: *in.Arguments}}, nil
	case "function_call_output":
		var in FunctionCallOutputInput
		if err := decode(path, text, &in); err != nil {
			return nil, err
		}
		parts, err := parseContent(path+".output", in.Output, model.User)
		return &model.Item{Result: &model.Result{CallID: *in.CallID, Parts: parts}}, err
	case "custom_tool_call":
		return parseCustomCall(path, text)
	case "custom_tool_call_output":
		return parseCustomOutput(path, text)
	case "reasoning":
		return p.reasoning(path, text)
	default:
		return nil, invalid("%s.type must be one of %s", path, itemKinds)
	}
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

func parseMessage(path string, text jsontext.Value) (*model.Item, error) {
	var in MessageInput
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	role := model.Role(*in.Role)
	parts, err := parseContent(path+".content", in.Content, role)
	return &model.Item{Message: &model.Message{Role: role, Parts: parts}}, err
}

// reasoning returns reasoning only with the state that the provider continues from.
func (p *parser) reasoning(path string, text jsontext.Value) (*model.Item, error) {
	var in ReasoningInput
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	if in.EncryptedContent == nil {
		return nil, nil
	}
	state, err := p.openState(*in.EncryptedContent)
	if err != nil {
		return nil, invalid("%s.encrypted_content was not made by this server", path)
	}
	t := &model.Thought{State: state}
	for _, s := range in.Summary {
		t.Summary = append(t.Summary, *s.Text)
	}
	return &model.Item{Reasoning: t}, nil
}

// Sealer encrypts what clients carry for the server.
type Sealer interface {
	Seal(plain []byte, place string) []byte
	Open(sealed []byte, place string) ([]byte, error)
}

func statePlace(t tenant.ID) string { return "responses/state/" + t }

// sealState and openState are a model's state as clients carry it. It says which
// provider made it, so they cannot read it.
func sealState(seal Sealer, t tenant.ID, s model.State) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(seal.Seal(text, statePlace(t))), nil
}

func (p *parser) openState(text string) (s model.State, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return s, err
	}
	plain, err := p.seal.Open(sealed, statePlace(p.tenant))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(plain, &s)
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

func parseContent(path string, content jsontext.Value, role model.Role) ([]model.Part, error) {
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
		part, err := parsePart(fmt.Sprintf("%s[%d]", path, i), text, role)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func parsePart(path string, text jsontext.Value, role model.Role) (part model.Part, err error) {
	var in ContentPart
	if err := decode(path, text, &in); err != nil {
		return part, err
	}
	lacks := func(field string) error { return invalid("%s.%s is required with type %s", path, field, *in.Type) }
	switch kind := *in.Type; {
	case kind == "input_text" && role != model.Assistant, kind == "output_text" && role == model.Assistant, kind == "text":
		if in.Text == nil {
			return part, lacks("text")
		}
		return model.Part{Kind: model.PartText, Text: *in.Text}, nil
	case kind == "refusal" && role == model.Assistant:
		if in.Refusal == nil {
			return part, lacks("refusal")
		}
		return model.Part{Kind: model.PartRefusal, Text: *in.Refusal}, nil
	case kind == "input_image" && role == model.User:
		if in.ImageURL == nil {
			return part, lacks("image_url")
		}
		part, err = parseURL(path+".image_url", model.PartImage, *in.ImageURL)
		if in.Detail != nil {
			part.Detail = *in.Detail
		}
		return part, err
	case kind == "input_file" && role == model.User:
		switch {
		case in.FileData != nil && in.FileURL == nil:
			part, err = parseData(path+".file_data", model.PartFile, *in.FileData)
		case in.FileURL != nil && in.FileData == nil:
			part, err = parseURL(path+".file_url", model.PartFile, *in.FileURL)
		default:
			return part, invalid("%s must have one of file_data and file_url", path)
		}
		if in.FileName != nil {
			part.Name = *in.FileName
		}
		return part, err
	}
	return part, invalid("%s.type %q has no place in a message of role %s; there are input_text, input_image and input_file of a user, output_text and refusal of an assistant", path, *in.Type, role)
}

// parseURL reads a URL that the provider fetches, or a data URL.
func parseURL(path string, kind model.PartKind, url string) (model.Part, error) {
	switch {
	case strings.HasPrefix(url, "data:"):
		return parseData(path, kind, url)
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		return model.Part{Kind: kind, URL: url}, nil
	}
	return model.Part{}, invalid("%s must be an https URL or a data URL", path)
}

// parseData reads a data URL in base64.
func parseData(path string, kind model.PartKind, url string) (model.Part, error) {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return model.Part{}, invalid("%s must be a data URL such as data:image/png;base64,…", path)
	}
	bytes, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return model.Part{}, invalid("%s is not valid base64", path)
	}
	return model.Part{Kind: kind, Data: bytes, MediaType: media}, nil
}
