package response

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

func (p *Plan) add(items ...model.Item) { p.q.Input = append(p.q.Input, items...) }

// Message adds a message to the input.
func (p *Plan) Message(role model.Role, parts []model.Part) {
	p.add(model.Item{Message: &model.Message{Role: role, Parts: parts}})
}

// Call adds a tool call that a model made earlier.
func (p *Plan) Call(c *model.Call) { p.add(model.Item{Call: c}) }

// Result adds the result of a call that the client made.
func (p *Plan) Result(call string, parts []model.Part) {
	p.add(model.Item{Result: &model.Result{CallID: call, Parts: parts}})
}

// Reason adds reasoning of an earlier answer. It keeps only reasoning with the state from which the
// provider continues.
func (p *Plan) Reason(path string, encrypted *string, summary []string) error {
	if encrypted == nil {
		return nil
	}
	state, err := p.s.openState(p.caller.Tenant.ID, *encrypted)
	if err != nil {
		return invalid("%s.encrypted_content was not made by this server", path)
	}
	p.add(model.Item{Reasoning: &model.Thought{State: state, Summary: summary}})
	return nil
}

// Refer adds an item of an earlier response, which the client does not repeat.
func (p *Plan) Refer(path, id string) error {
	items, err := p.find(id)
	if fault.KindOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "%s: there is no item with the id %q; only items of responses that are kept can be referred to", path, id)
	}
	p.add(items...)
	return err
}

// Repeat adds a call of a tool of the server that the client repeats from an output, as the record has it.
// ok is false if there is no record.
func (p *Plan) Repeat(id string) (ok bool, err error) {
	items, err := p.find(id)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	p.add(items...)
	return err == nil, err
}

// ServerCall is a call of a tool of the server, as the client has it.
type ServerCall struct {
	Kind           string // of its item
	ID, CallID     string
	Language, Code string
	Shown          jsontext.Value // the whole item
}

// ServerCall adds a call without a record. The model gets what the client says.
func (p *Plan) ServerCall(c *ServerCall) error {
	call := &model.Call{ID: c.CallID, Name: c.Kind, Arguments: "{}"}
	if call.ID == "" {
		call.ID = c.ID
	}
	if call.ID == "" {
		return invalid("an item of type %s must have the id or the call_id that its response had", c.Kind)
	}
	if c.Code != "" {
		arguments, err := json.Marshal(map[string]string{"language": c.Language, "code": c.Code}, json.Deterministic(true))
		if err != nil {
			return err
		}
		call.Name, call.Arguments = sandboxtool.RunCode, string(arguments)
	}
	p.answered(call, string(c.Shown))
	return nil
}

// answered adds a call and the text of its result.
func (p *Plan) answered(c *model.Call, text string) {
	p.add(model.Item{Call: c}, model.Item{Result: &model.Result{CallID: c.ID, Parts: []model.Part{{Kind: model.PartText, Text: text}}}})
}

// InterpreterOutput is something that code has written or shown.
type InterpreterOutput struct {
	Logs  *string
	Image bool
}

// InterpreterCall adds a call of code_interpreter of an earlier answer. nil outputs were omitted.
func (p *Plan) InterpreterCall(path, id string, code *string, outputs []InterpreterOutput) error {
	if code == nil {
		code = new("")
	}
	arguments, err := json.Marshal(interpreter.Input{Code: code})
	if err != nil {
		return err
	}
	result := ""
	for _, o := range outputs {
		switch {
		case o.Logs != nil:
			result += *o.Logs
		case o.Image:
			result += "[an image shown to the user]\n"
		default:
			return invalid("%s.outputs must be logs and images", path)
		}
	}
	if outputs == nil {
		result = "The output of this call was omitted from the conversation."
	}
	p.answered(&model.Call{ID: id, Name: interpreter.Name, Arguments: string(arguments)}, result)
	return nil
}

// RemoteCall is a call of an MCP server's tool, which the client carries.
type RemoteCall struct {
	ID, Server, Tool, Arguments string
	Asks                        bool    // it waits for an approval, and has no result
	Approval                    *string // id of the item that asked for its approval
	Output                      *string
	Failed                      bool
	Error                       string
}

// RemoteCall adds a call of an MCP server's tool, and returns its result; nil for a call that waits for an
// approval.
func (p *Plan) RemoteCall(path string, c *RemoteCall) (*model.Result, error) {
	if !itemID.MatchString(c.ID) || !serverLabel.MatchString(c.Server) {
		return nil, invalid("%s must have the id and the server_label that it was given with", path)
	}
	p.Call(&model.Call{ID: c.ID, Name: mcptool.Name(c.Server, c.Tool), Arguments: c.Arguments})
	if c.Asks {
		p.in.Asked = append(p.in.Asked, c.ID)
		return nil, nil
	}
	if c.Approval != nil {
		p.settled = append(p.settled, *c.Approval)
	}
	r := &model.Result{CallID: c.ID, Failed: c.Failed, Parts: []model.Part{{Kind: model.PartText, Text: c.Error}}}
	if !c.Failed && c.Output != nil {
		r.Parts[0].Text = *c.Output
	}
	p.add(model.Item{Result: r})
	return r, nil
}

// Decide adds the client's answer to an item that asked for an approval.
func (p *Plan) Decide(a Approval) { p.in.Approvals = append(p.in.Approvals, a) }

// RemoteTool is a tool of an MCP server, as the server describes it.
type RemoteTool struct {
	Name                string
	Description         *string
	Schema, Annotations jsontext.Value
}

// Know adds the tools of an MCP server, so that the server need not be asked again.
func (p *Plan) Know(path, label string, tools []RemoteTool) error {
	if len(tools) > mcpclient.MaxTools {
		return nil // the server is asked
	}
	known := mcptool.Known{Label: label, Tools: []run.RemoteTool{}}
	for i, t := range tools {
		about := ""
		if t.Description != nil {
			about = *t.Description
		}
		tool, err := mcpclient.Tool(t.Name, about, t.Schema, t.Annotations)
		if err != nil {
			return invalid("%s.tools[%d]: %s", path, i, err)
		}
		known.Tools = append(known.Tools, tool)
	}
	p.in.Known = append(p.in.Known, known)
	return nil
}

// settle leaves out items that asked for approvals whose calls were made since.
func (p *Plan) settle() {
	p.q.Input = slices.DeleteFunc(p.q.Input, func(it model.Item) bool {
		return it.Call != nil && slices.Contains(p.in.Asked, it.Call.ID) && slices.Contains(p.settled, it.Call.ID)
	})
	p.in.Approvals = slices.DeleteFunc(p.in.Approvals, func(a Approval) bool { return slices.Contains(p.settled, a.Request) })
}

// Part is a part of a message or of a tool's output. Nil fields were omitted.
type Part struct {
	Type                        string
	Text, Refusal               *string
	ImageURL, Detail            *string
	FileName, FileData, FileURL *string
}

// Model returns a part at a path as the model gets it, in a message of a role.
func (in *Part) Model(path string, role model.Role) (part model.Part, err error) {
	lacks := func(field string) error { return invalid("%s.%s is required with type %s", path, field, in.Type) }
	switch kind := in.Type; {
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
		part, err = partAt(path+".image_url", model.PartImage, *in.ImageURL)
		if in.Detail != nil {
			part.Detail = *in.Detail
		}
		return part, err
	case kind == "input_file" && role == model.User:
		switch {
		case in.FileData != nil && in.FileURL == nil:
			part, err = partOf(path+".file_data", model.PartFile, *in.FileData)
		case in.FileURL != nil && in.FileData == nil:
			part, err = partAt(path+".file_url", model.PartFile, *in.FileURL)
		default:
			return part, invalid("%s must have one of file_data and file_url", path)
		}
		if in.FileName != nil {
			part.Name = *in.FileName
		}
		return part, err
	}
	return part, invalid("%s.type %q has no place in a message of role %s; there are input_text, input_image and input_file of a user, output_text and refusal of an assistant", path, in.Type, role)
}

// partAt reads a URL that the provider fetches, or a data URL.
func partAt(path string, kind model.PartKind, url string) (model.Part, error) {
	switch {
	case strings.HasPrefix(url, "data:"):
		return partOf(path, kind, url)
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		return model.Part{Kind: kind, URL: url}, nil
	}
	return model.Part{}, invalid("%s must be an https URL or a data URL", path)
}

// partOf reads a data URL in base64.
func partOf(path string, kind model.PartKind, url string) (model.Part, error) {
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
