package response

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
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

var itemID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// mcpItem reads an item of MCP, which may stand for none or several of the conversation.
func (p *parser) mcpItem(path, kind string, text jsontext.Value) ([]model.Item, error) {
	switch kind {
	case "mcp_list_tools":
		return nil, p.listed(path, text)
	case "mcp_approval_response":
		var in MCPApprovalResponseInput
		if err := decode(path, text, &in); err != nil {
			return nil, err
		}
		a := response.Approval{Path: path, Request: *in.RequestID, Approve: *in.Approve}
		if in.Reason != nil {
			a.Reason = *in.Reason
		}
		p.approvals = append(p.approvals, a)
		return nil, nil
	}
	var in MCPCallInput
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	if !itemID.MatchString(*in.ID) || !serverLabel.MatchString(*in.ServerLabel) {
		return nil, invalid("%s must have the id and the server_label that it was given with", path)
	}
	call := model.Item{Call: &model.Call{ID: *in.ID, Name: mcptool.Name(*in.ServerLabel, *in.Name), Arguments: *in.Arguments}}
	if kind == "mcp_approval_request" {
		p.asked = append(p.asked, *in.ID)
		return []model.Item{call}, nil
	}
	if in.Approval != nil {
		p.settled = append(p.settled, *in.Approval)
	}
	result := &model.Result{CallID: *in.ID, Parts: []model.Part{{Kind: model.PartText}}}
	switch {
	case in.Error.Kind() != 0 && in.Error.Kind() != 'n':
		result.Failed = true
		if json.Unmarshal(in.Error, &result.Parts[0].Text) != nil {
			result.Parts[0].Text = string(in.Error)
		}
	case in.Output != nil:
		result.Parts[0].Text = *in.Output
	}
	if in.Content != nil {
		parts, err := parseContent(path+".content", in.Content, model.User)
		if err != nil {
			return nil, err
		}
		result.Parts = append(result.Parts, parts...)
	}
	return []model.Item{call, {Result: result}}, nil
}

// listed reads a list of tools, so that its server need not be asked again.
func (p *parser) listed(path string, text jsontext.Value) error {
	var in MCPListToolsInput
	if err := decode(path, text, &in); err != nil {
		return err
	}
	if in.Error != nil || len(in.Tools) > mcpclient.MaxTools {
		return nil // the server is asked
	}
	known := mcptool.Known{Label: *in.ServerLabel, Tools: []run.RemoteTool{}}
	for i, t := range in.Tools {
		about := ""
		if t.Description != nil {
			about = *t.Description
		}
		tool, err := mcpclient.Tool(t.Name, about, t.InputSchema, t.Annotations)
		if err != nil {
			return invalid("%s.tools[%d]: %s", path, i, err)
		}
		known.Tools = append(known.Tools, tool)
	}
	p.lists = append(p.lists, known)
	return nil
}

// settle leaves out what asked for approvals whose calls were made since.
func (p *parser) settle(items []model.Item) []model.Item {
	items = slices.DeleteFunc(items, func(it model.Item) bool {
		return it.Call != nil && slices.Contains(p.asked, it.Call.ID) && slices.Contains(p.settled, it.Call.ID)
	})
	p.approvals = slices.DeleteFunc(p.approvals, func(a response.Approval) bool { return slices.Contains(p.settled, a.Request) })
	return items
}

// showDecision renders a decision of a run, as its input items have them.
func showDecision(a response.Approval, name string, i int) ResponseItem {
	return ResponseItem{Type: "mcp_approval_response", ID: fmt.Sprintf("mcpa_%s%04x", name, i), ApprovalRequestID: a.Request, Approve: &a.Approve, Reason: a.Reason}
}
