package response

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// Bounds of the servers of a request.
const (
	maxServers     = 16
	maxServerAbout = 500 // characters of server_description
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

var serverLabel = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

// parseMCP adds a server, and returns the tool as it is shown: without what is secret.
func (p *parser) parseMCP(path string, text jsontext.Value) (jsontext.Value, error) {
	for _, name := range []string{"connector_id", "tunnel_id"} {
		if hasField(text, name) {
			return nil, invalid("%s.%s is not taken: there are servers with a server_url alone", path, name)
		}
	}
	var in MCPTool
	if err := decode(path, text, &in); err != nil {
		return nil, err
	}
	switch {
	case !serverLabel.MatchString(*in.ServerLabel):
		return nil, invalid("%s.server_label must have 1 to 64 letters, digits, _ and -, and begin with a letter", path)
	case slices.ContainsFunc(p.servers, func(s mcptool.Server) bool { return s.Label == *in.ServerLabel }):
		return nil, invalid("%s.server_label: duplicate %q", path, *in.ServerLabel)
	case len(p.servers) == maxServers:
		return nil, invalid("tools must have at most %d of type mcp", maxServers)
	case in.DeferLoading != nil && *in.DeferLoading:
		return nil, invalid("%s.defer_loading must be false: the model is given all tools at once", path)
	case len(in.AllowedCallers) > 0 && !slices.Equal(in.AllowedCallers, []string{"direct"}):
		return nil, invalid(`%s.allowed_callers must be ["direct"]: programs do not call these tools`, path)
	}
	s := mcptool.Server{Label: *in.ServerLabel, Target: mcpclient.Target{URL: *in.ServerURL, Headers: in.Headers}}
	if in.ServerDescription != nil {
		if s.Description = *in.ServerDescription; len([]rune(s.Description)) > maxServerAbout {
			return nil, invalid("%s.server_description must have at most %d characters", path, maxServerAbout)
		}
	}
	if err := in.authorize(path, &s.Target); err != nil {
		return nil, err
	}
	allowed, err := filter(path+".allowed_tools", in.AllowedTools)
	if err != nil {
		return nil, err
	}
	if allowed != nil {
		s.Allowed = *allowed
	}
	if s.Never, err = unasked(path+".require_approval", in.RequireApproval); err != nil {
		return nil, err
	}
	if err := p.mcp.Check(outbound.For(p.ctx, p.tenant), path, &s); err != nil {
		return nil, err
	}
	p.servers = append(p.servers, s)
	approval := in.RequireApproval
	if len(approval) == 0 {
		approval = jsontext.Value(`"always"`)
	}
	shown := map[string]any{"type": "mcp", "server_label": s.Label, "server_url": s.Target.Origin(), "server_description": in.ServerDescription, "allowed_tools": in.AllowedTools, "require_approval": approval, "headers": nil}
	if len(in.AllowedTools) == 0 {
		shown["allowed_tools"] = nil
	}
	return json.Marshal(shown, json.Deterministic(true))
}

func hasField(text jsontext.Value, name string) bool {
	var fields map[string]jsontext.Value
	return json.Unmarshal(text, &fields) == nil && len(fields[name]) > 0 && fields[name].Kind() != 'n'
}

// authorize adds the token to what a server is asked with.
func (in *MCPTool) authorize(path string, t *mcpclient.Target) error {
	if in.Authorization == nil {
		return nil
	}
	if *in.Authorization == "" {
		return invalid("%s.authorization must be a token", path)
	}
	headers := map[string]string{"Authorization": "Bearer " + strings.TrimPrefix(*in.Authorization, "Bearer ")}
	for name, value := range t.Headers {
		if strings.EqualFold(name, "Authorization") {
			return invalid("%s has authorization and the header Authorization; give one of them", path)
		}
		headers[name] = value
	}
	t.Headers = headers
	return nil
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
	return f.filter(path)
}

func (f *MCPFilter) filter(path string) (*mcptool.Filter, error) {
	if f.ToolNames != nil && len(f.ToolNames) == 0 || len(f.ToolNames) > mcpclient.MaxTools || f.ToolNames == nil && f.ReadOnly == nil {
		return nil, invalid("%s must name 1 to %d tools, or say whether they are read-only", path, mcpclient.MaxTools)
	}
	return &mcptool.Filter{Names: f.ToolNames, ReadOnly: f.ReadOnly}, nil
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
	if in.Always != nil {
		if _, err := in.Always.filter(path + ".always"); err != nil {
			return nil, err
		}
	}
	if in.Never == nil {
		return nil, nil
	}
	never, err := in.Never.filter(path + ".never")
	if err == nil && in.Always != nil {
		for _, name := range in.Always.ToolNames {
			if slices.Contains(never.Names, name) {
				return nil, invalid("%s names %q in always and in never", path, name)
			}
		}
		if in.Always.ReadOnly != nil || in.Always.ToolNames != nil && never.Names == nil {
			return nil, invalid("%s.always must have tool_names beside tool_names of never, or nothing: calls that never does not name need an approval anyway", path)
		}
	}
	return never, err
}
