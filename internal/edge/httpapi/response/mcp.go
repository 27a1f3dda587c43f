package response

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
)

// MCPTool is the tool mcp: a server of others, with all that it can.
type MCPTool struct {
	Type              *string           `json:"type" required:"true"`
	ServerLabel       *string           `json:"server_label" required:"true"`
	ServerURL         *string           `json:"server_url" required:"true"`
	ServerDescription *string           `json:"server_description,omitzero"`
	Headers           map[string]string `json:"headers,omitzero"`
	Authorization     *string           `json:"authorization,omitzero"`
	AllowedTools      jsontext.Value    `json:"allowed_tools,omitzero"`
	RequireApproval   jsontext.Value    `json:"require_approval,omitzero"`
	AllowedCallers    []string          `json:"allowed_callers,omitzero"`
	DeferLoading      *bool             `json:"defer_loading,omitzero"`
}

// MCPFilter chooses tools of a server.
type MCPFilter struct {
	ToolNames []string `json:"tool_names,omitzero"`
	ReadOnly  *bool    `json:"read_only,omitzero"`
}

// MCPApproval says which calls need an approval.
type MCPApproval struct {
	Always *MCPFilter `json:"always,omitzero"`
	Never  *MCPFilter `json:"never,omitzero"`
}

// mcp decodes a server. The response shows it without what is secret.
func (r *reader) mcp(path string, text jsontext.Value) error {
	for _, name := range []string{"connector_id", "tunnel_id"} {
		if hasField(text, name) {
			return invalid("%s.%s is not taken: there are servers with a server_url alone", path, name)
		}
	}
	var in MCPTool
	if err := decode(path, text, &in); err != nil {
		return err
	}
	s, err := r.Server(path, &response.RemoteServer{
		Label: *in.ServerLabel, URL: *in.ServerURL, Description: in.ServerDescription, Authorization: in.Authorization, Headers: in.Headers, DeferLoading: in.DeferLoading, AllowedCallers: in.AllowedCallers,
	})
	if err != nil {
		return err
	}
	allowed, err := filter(path+".allowed_tools", in.AllowedTools)
	if err != nil {
		return err
	}
	if allowed != nil {
		s.Allowed = *allowed
	}
	if s.Never, err = unasked(path+".require_approval", in.RequireApproval); err != nil {
		return err
	}
	if err := r.AddServer(path, s); err != nil {
		return err
	}
	approval := in.RequireApproval
	if len(approval) == 0 {
		approval = jsontext.Value(`"always"`)
	}
	shown := map[string]any{"type": "mcp", "server_label": s.Label, "server_url": s.Target.Origin(), "server_description": in.ServerDescription, "allowed_tools": in.AllowedTools, "require_approval": approval, "headers": nil}
	if len(in.AllowedTools) == 0 {
		shown["allowed_tools"] = nil
	}
	out, err := json.Marshal(shown, json.Deterministic(true))
	r.Show(out)
	return err
}

func hasField(text jsontext.Value, name string) bool {
	var fields map[string]jsontext.Value
	return json.Unmarshal(text, &fields) == nil && len(fields[name]) > 0 && fields[name].Kind() != 'n'
}

// filter reads a choice of tools: names, or an object.
func filter(path string, text jsontext.Value) (*mcptool.Filter, error) {
	var f MCPFilter
	switch text.Kind() {
	case 0, 'n':
		return nil, nil
	case '[':
		if json.Unmarshal(text, &f.ToolNames) != nil {
			return nil, invalid("%s must be names of tools, or an object with tool_names and read_only", path)
		}
	default:
		if err := decode(path, text, &f); err != nil {
			return nil, err
		}
	}
	return response.Filter(path, f.ToolNames, f.ReadOnly)
}

// unasked reads which calls need no approval; nil for none.
func unasked(path string, text jsontext.Value) (*mcptool.Filter, error) {
	var mode string
	switch text.Kind() {
	case 0, 'n':
		return nil, nil
	case '"':
		if _ = json.Unmarshal(text, &mode); mode != "always" && mode != "never" {
			return nil, invalid("%s must be always, never, or an object with always and never", path)
		}
		if mode == "always" {
			return nil, nil
		}
		return &mcptool.Filter{}, nil
	}
	var in MCPApproval
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	var always *mcptool.Filter
	if f := in.Always; f != nil {
		var err error
		if always, err = response.Filter(path+".always", f.ToolNames, f.ReadOnly); err != nil {
			return nil, err
		}
	}
	if in.Never == nil {
		return nil, nil
	}
	never, err := response.Filter(path+".never", in.Never.ToolNames, in.Never.ReadOnly)
	if err == nil && always != nil {
		err = response.CheckFilters(path, always, never)
	}
	return never, err
}
