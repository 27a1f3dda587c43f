package response

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Approval is a client's answer to an item mcp_approval_request. It is kept with the run, for
// its input items.
type Approval struct {
	Path    string `json:"-"`
	Request string `json:"approval_request_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitzero"`
}

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
		a := Approval{Path: path, Request: *in.RequestID, Approve: *in.Approve}
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
	p.approvals = slices.DeleteFunc(p.approvals, func(a Approval) bool { return slices.Contains(p.settled, a.Request) })
	return items
}

// approve makes calls that the client has approved the beginning of a run, and gives the
// others a result that says so. before is the state of the response that the run continues;
// nil for none.
func (p *parser) approve(q *run.Request, s *Settings, before *run.State) error {
	open := map[string]string{} // ids of calls, by the items that asked for their approval
	for _, id := range p.asked {
		open[id] = id
	}
	if before != nil {
		for i := range before.Output {
			if it := &before.Output[i]; it.Approval != nil {
				open[it.ID] = it.Approval.CallID
			}
		}
	}
	for _, a := range p.approvals {
		call, ok := open[a.Request]
		at := lastCall(q.Input, call)
		if !ok || at < 0 {
			return invalid("%s.approval_request_id names no mcp_approval_request that waits for an answer", a.Path)
		}
		delete(open, a.Request)
		s.Approvals = append(s.Approvals, a)
		q.Verdicts = append(q.Verdicts, run.Said{Item: a.Request, Call: call, Tool: q.Input[at].Call.Name, Approve: a.Approve, Reason: a.Reason})
		if !a.Approve {
			p.refuse(q, s, at, a.Reason)
			continue
		}
		c := q.Input[at].Call
		if !slices.ContainsFunc(q.Tools, func(t run.Tool) bool { return t.Name == c.Name && t.Server != "" }) {
			return invalid("%s approves a call of %s, which no server among tools has", a.Path, c.Name)
		}
		q.Approved = append(q.Approved, run.Approved{Call: call, Approval: a.Request})
	}
	for id, call := range open {
		if lastCall(q.Input, call) >= 0 {
			return invalid("input has no mcp_approval_response for %q", id)
		}
	}
	return nil
}

// lastCall is the place of the last call of an id if it has no result; -1 otherwise.
func lastCall(items []model.Item, id string) int {
	for at, it := range slices.Backward(items) {
		if it.Result != nil && it.Result.CallID == id {
			return -1
		}
		if it.Call != nil && it.Call.ID == id {
			return at
		}
	}
	return -1
}

// refuse gives the call at a place a result, after the calls that were asked for with it.
func (p *parser) refuse(q *run.Request, s *Settings, at int, reason string) {
	text := "The user did not allow this call, so it was not made."
	if reason != "" {
		text += " The user's reason: " + reason
	}
	result := model.Item{Result: &model.Result{CallID: q.Input[at].Call.ID, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: text}}}}
	at++
	for at < len(q.Input) && (q.Input[at].Call != nil || q.Input[at].Result != nil) {
		at++
	}
	if at > len(q.Input)-s.InputItems {
		s.InputItems++
	}
	q.Input = slices.Insert(q.Input, at, result)
}

// shown are the approvals of a run, as its input items have them.
func (a Approval) shown(name string, i int) ResponseItem {
	return ResponseItem{Type: "mcp_approval_response", ID: fmt.Sprintf("mcpa_%s%04x", name, i), ApprovalRequestID: a.Request, Approve: &a.Approve, Reason: a.Reason}
}
