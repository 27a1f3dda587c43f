package response

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ResponseToolOfOther is a tool of an MCP server, as that describes it.
type ResponseToolOfOther struct {
	Name        string         `json:"name" required:"true"`
	Description *string        `json:"description" nullable:"true"`
	InputSchema jsontext.Value `json:"input_schema" required:"true" doc:"JSON Schema of the arguments."`
	Annotations jsontext.Value `json:"annotations,omitzero" doc:"Annotations of the tool by the server, such as readOnlyHint. They may be wrong."`
}

func showRemoteCall(out *ResponseItem, u *run.ToolUse) error {
	out.Type, out.CallID, out.ServerLabel, out.Name, out.ApprovalRequestID, out.Error = "mcp_call", "", u.Server, u.Tool, u.Approval, u.Error
	arguments := string(u.Input)
	if u.Input == nil {
		arguments = u.Writes
	}
	out.Arguments = &arguments
	out.Output = jsontext.Value(u.Output)
	if len(u.Images) > 0 {
		out.Content = &ResponseContent{Parts: partsOf(u.Images, model.User)}
	}
	return nil
}

func showListing(out *ResponseItem, l *run.Listing) {
	out.Type, out.ServerLabel, out.Status = "mcp_list_tools", l.Server, ""
	tools := make([]ResponseToolOfOther, len(l.Tools))
	for i, t := range l.Tools {
		tools[i] = ResponseToolOfOther{t.Name, httpapi.OrNull(t.Description), jsontext.Value(t.Schema), jsontext.Value(t.Annotations)}
	}
	out.Tools = &tools
}

func showApproval(out *ResponseItem, a *run.Approval) {
	out.Type, out.Status, out.ServerLabel, out.Name, out.Arguments = "mcp_approval_request", "", a.Server, a.Tool, &a.Arguments
}

// useBegan sends the events of a tool whose call is in progress.
func (s *stream) useBegan(it *run.Item, id string, at *int) error {
	send := func(e ResponseEvent) error {
		e.ItemID, e.OutputIndex = id, at
		return s.send(&e)
	}
	switch {
	case it.Listing != nil:
		return send(ResponseEvent{Type: "response.mcp_list_tools.in_progress"})
	case it.Use != nil && it.Use.Server != "":
		if err := send(ResponseEvent{Type: "response.mcp_call.in_progress"}); err != nil {
			return err
		}
	case it.Use != nil && it.Use.Tool == response.SearchCall:
		if err := send(ResponseEvent{Type: "response.web_search_call.in_progress"}); err != nil {
			return err
		}
		return send(ResponseEvent{Type: "response.web_search_call.searching"})
	}
	return nil
}

// useDone sends the event of a tool whose call has ended.
func (s *stream) useDone(it *run.Item, id string, at *int) error {
	var kind string
	switch {
	case it.Listing != nil:
		kind = "response.mcp_list_tools.completed"
	case it.Use != nil && it.Use.Server != "" && it.Status == run.ItemCompleted:
		kind = "response.mcp_call.completed"
	case it.Use != nil && it.Use.Server != "":
		kind = "response.mcp_call.failed"
	case it.Use != nil && it.Use.Tool == response.SearchCall:
		kind = "response.web_search_call.completed"
	default:
		return nil
	}
	return s.send(&ResponseEvent{Type: kind, ItemID: id, OutputIndex: at})
}
