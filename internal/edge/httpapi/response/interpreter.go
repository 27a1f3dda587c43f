package response

import (
	"encoding/base64"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
)

// InterpreterTool is the tool code_interpreter.
type InterpreterTool struct {
	Type           *string          `json:"type" required:"true"`
	Container      jsontext.Value   `json:"container"`
	AllowedCallers []jsontext.Value `json:"allowed_callers,omitzero"`
}

// AutoContainer is a container that the server makes for a conversation.
type AutoContainer struct {
	Type *string `json:"type" required:"true" enum:"auto"`
	openaiwire.ContainerOptions
}

// interpreter decodes the tool code_interpreter.
func (r *reader) interpreter(path string, text jsontext.Value) error {
	var in InterpreterTool
	if err := decode(path, text, &in); err != nil {
		return err
	}
	if len(in.AllowedCallers) > 0 {
		return invalid("%s.allowed_callers is not supported", path)
	}
	if r.HasInterpreter() {
		return invalid("tools has code_interpreter twice")
	}
	var o interpreter.Options
	switch in.Container.Kind() {
	case '"':
		var id container.ID
		if err := json.Unmarshal(in.Container, &id); err != nil {
			return invalid("%s.container: %s", path, err)
		}
		if _, ok := id.Sandbox(); !ok {
			return response.ErrNoContainer(path)
		}
		o.Container = id
	case '{':
		var auto AutoContainer
		if err := decode(path+".container", in.Container, &auto); err != nil {
			return err
		}
		var err error
		if o.Memory, o.Network, err = auto.Domain(path+".container.", r.env); err != nil {
			return err
		}
	default:
		return invalid(`%s.container must be the id of a container, or {"type": "auto"}`, path)
	}
	return r.Interpreter(o, text)
}

// ResponseInterpreterOutput is something that code has written or shown.
type ResponseInterpreterOutput struct {
	Type string  `json:"type" required:"true" enum:"logs,image"`
	Logs *string `json:"logs,omitzero"`
	URL  string  `json:"url,omitzero" doc:"A data URL."`
}

// showInterpreter shows a call of code_interpreter with its outputs.
func showInterpreter(out *ResponseItem, u *run.ToolUse) error {
	var is interpreter.Output
	if len(u.Output) > 0 {
		if err := json.Unmarshal(u.Output, &is); err != nil {
			return err
		}
	}
	code, err := interpreter.CodeOf(u)
	if err != nil {
		return err
	}
	out.Type, out.CallID, out.ContainerID, out.Code = "code_interpreter_call", "", new(string(is.Container)), &code
	outputs := []ResponseInterpreterOutput{}
	if is.Logs != "" {
		outputs = append(outputs, ResponseInterpreterOutput{Type: "logs", Logs: &is.Logs})
	}
	for _, image := range is.Images {
		outputs = append(outputs, ResponseInterpreterOutput{Type: "image", URL: "data:" + image.MediaType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)})
	}
	out.Outputs, err = json.Marshal(outputs)
	return err
}

// hideOutputs leaves the outputs of a call of code_interpreter out, unless they were asked
// for.
func (v *renderer) hideOutputs(out *ResponseItem, set *response.Settings) {
	if out.Type == "code_interpreter_call" && !set.Outputs && !v.outputs {
		out.Outputs = jsontext.Value("null")
	}
}

// asksOutputs reports whether the query of a request includes outputs.
func asksOutputs(c *httpapi.Call) bool {
	return slices.Contains(c.Query["include"], response.IncludeOutputs) || slices.Contains(c.Query["include[]"], response.IncludeOutputs)
}

// interpreterAdded takes from an item what is told of it later.
func interpreterAdded(shown *ResponseItem, recorded bool) {
	if shown.Type != "code_interpreter_call" {
		return
	}
	shown.Code, shown.Outputs = new(""), jsontext.Value("null")
	if recorded { // the record may have another by now
		shown.ContainerID = new("")
	}
}

// interpreterBegan tells of an item that has begun.
func (s *stream) interpreterBegan(it *run.Item, id string, at *int) error {
	if it.Use == nil || it.Use.Tool != interpreter.Name {
		return nil
	}
	return s.send(&ResponseEvent{Type: "response.code_interpreter_call.in_progress", ItemID: id, OutputIndex: at})
}

// interpreterDone tells that the code of an item has ended.
func (s *stream) interpreterDone(it *run.Item, id string, at *int) error {
	if it.Use == nil || it.Use.Tool != interpreter.Name || it.Status != run.ItemCompleted {
		return nil
	}
	return s.send(&ResponseEvent{Type: "response.code_interpreter_call.completed", ItemID: id, OutputIndex: at})
}

// InterpreterCallInput is a call of code_interpreter of an earlier answer.
type InterpreterCallInput struct {
	Type        *string                     `json:"type" required:"true"`
	ID          *string                     `json:"id" required:"true"`
	Code        *string                     `json:"code,omitzero"`
	ContainerID *string                     `json:"container_id,omitzero"`
	Outputs     []ResponseInterpreterOutput `json:"outputs,omitzero"`
	Status      *string                     `json:"status,omitzero"`
}

// interpreterCall decodes a call and its result.
func (r *reader) interpreterCall(path string, text jsontext.Value) error {
	var in InterpreterCallInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	var outputs []response.InterpreterOutput
	if in.Outputs != nil {
		outputs = []response.InterpreterOutput{}
	}
	for _, o := range in.Outputs {
		one := response.InterpreterOutput{Image: o.Type == "image"}
		if o.Type == "logs" {
			one.Logs = o.Logs
		}
		outputs = append(outputs, one)
	}
	return r.InterpreterCall(path, *in.ID, in.Code, outputs)
}
