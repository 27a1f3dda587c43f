package response

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// MCPApprovalResponseInput is an Approval in the input of a request.
type MCPApprovalResponseInput struct {
	Type      *string `json:"type" required:"true"`
	RequestID *string `json:"approval_request_id" required:"true"`
	Approve   *bool   `json:"approve" required:"true"`
	Reason    *string `json:"reason,omitzero"`
	ID        *string `json:"id,omitzero"`
}

// MCPCallInput is an item mcp_call or mcp_approval_request that a client carries itself.
type MCPCallInput struct {
	Type        *string        `json:"type" required:"true"`
	ID          *string        `json:"id" required:"true"`
	ServerLabel *string        `json:"server_label" required:"true"`
	Name        *string        `json:"name" required:"true"`
	Arguments   *string        `json:"arguments" required:"true"`
	Output      *string        `json:"output,omitzero"`
	Error       jsontext.Value `json:"error,omitzero"`
	Approval    *string        `json:"approval_request_id,omitzero"`
	Status      *string        `json:"status,omitzero"`
	Content     jsontext.Value `json:"content,omitzero" doc:"Pictures of what the tool gave."`
}

// MCPListToolsInput is an item mcp_list_tools that a client carries itself.
type MCPListToolsInput struct {
	Type        *string               `json:"type" required:"true"`
	ID          *string               `json:"id,omitzero"`
	ServerLabel *string               `json:"server_label" required:"true"`
	Tools       []ResponseToolOfOther `json:"tools" required:"true"`
	Error       *string               `json:"error,omitzero"`
	Status      *string               `json:"status,omitzero"`
}

// mcpKinds are the items of MCP in an input.
var mcpKinds = []string{"mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"}

// mcpItem decodes an item of MCP.
func (r *reader) mcpItem(path, kind string, text jsontext.Value) error {
	switch kind {
	case "mcp_list_tools":
		return r.listed(path, text)
	case "mcp_approval_response":
		var in MCPApprovalResponseInput
		if err := decode(path, text, &in); err != nil {
			return err
		}
		a := response.Approval{Path: path, Request: *in.RequestID, Approve: *in.Approve}
		if in.Reason != nil {
			a.Reason = *in.Reason
		}
		r.Decide(a)
		return nil
	}
	var in MCPCallInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	call := &response.RemoteCall{
		ID: *in.ID, Server: *in.ServerLabel, Tool: *in.Name, Arguments: *in.Arguments, Asks: kind == "mcp_approval_request", Approval: in.Approval, Output: in.Output,
		Failed: in.Error.Kind() != 0 && in.Error.Kind() != 'n',
	}
	if call.Failed && json.Unmarshal(in.Error, &call.Error) != nil {
		call.Error = string(in.Error)
	}
	result, err := r.RemoteCall(path, call)
	if err != nil || result == nil || in.Content == nil {
		return err
	}
	parts, err := readContent(path+".content", in.Content, model.User)
	result.Parts = append(result.Parts, parts...)
	return err
}

// listed decodes a list of tools.
func (r *reader) listed(path string, text jsontext.Value) error {
	var in MCPListToolsInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	if in.Error != nil {
		return nil // the server is asked
	}
	return r.Know(path, *in.ServerLabel, httpapi.Each(in.Tools, func(t ResponseToolOfOther) response.RemoteTool {
		return response.RemoteTool{Name: t.Name, Description: t.Description, Schema: t.InputSchema, Annotations: t.Annotations}
	}))
}

// showDecision renders a decision of a run, as its input items have them.
func showDecision(a response.Approval, name string, i int) ResponseItem {
	return ResponseItem{Type: "mcp_approval_response", ID: fmt.Sprintf("mcpa_%s%04x", name, i), ApprovalRequestID: a.Request, Approve: &a.Approve, Reason: a.Reason}
}
