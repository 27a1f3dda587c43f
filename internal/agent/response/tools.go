package response

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Bounds of the servers of a request.
const (
	maxServers     = 16
	maxServerAbout = 500 // characters of a description
	maxGrammar     = 256 << 10
)

// tool adds a tool, and how the response shows it.
func (p *Plan) tool(t *run.Tool, shown jsontext.Value) {
	p.q.Tools = append(p.q.Tools, *t)
	p.Show(shown)
}

// Show adds how the response shows a tool.
func (p *Plan) Show(shown jsontext.Value) { p.set.Tools = append(p.set.Tools, shown) }

// handles reports whether the request has a tool with a handler.
func (p *Plan) handles(handler string) bool {
	return slices.ContainsFunc(p.q.Tools, func(t run.Tool) bool { return t.Handler == handler })
}

// Sandbox adds the tools of the sandbox, once.
func (p *Plan) Sandbox() {
	if !p.handles(sandboxtool.Handler) {
		p.q.Tools = append(p.q.Tools, sandboxtool.Tools()...)
	}
	p.q.PlaceFiles = true
	p.Show(jsontext.Value(`{"type":"sandbox"}`))
}

// HasInterpreter reports whether the request has code_interpreter.
func (p *Plan) HasInterpreter() bool { return p.handles(interpreter.Name) }

// Interpreter adds code_interpreter.
func (p *Plan) Interpreter(o interpreter.Options, shown jsontext.Value) error {
	t, err := interpreter.Tool(o)
	if err != nil {
		return err
	}
	p.q.PlaceFiles = true
	p.tool(&t, shown)
	return nil
}

// Function adds a tool of the client's, which takes JSON.
func (p *Plan) Function(path, name string, description *string, parameters jsontext.Value, strict *bool) error {
	if !toolName.MatchString(name) {
		return invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
	}
	t := &run.Tool{Tool: model.Tool{Name: name, Strict: is(strict)}}
	if description != nil {
		t.Description = *description
	}
	shown := map[string]any{"type": "function", "name": name, "description": description, "parameters": nil, "strict": strict}
	if len(parameters) > 0 && parameters.Kind() != 'n' {
		if parameters.Kind() != '{' || len(parameters) > maxSchema {
			return invalid("%s.parameters must be a JSON Schema of at most %d bytes", path, maxSchema)
		}
		t.Parameters, shown["parameters"] = parameters, parameters
	}
	out, err := json.Marshal(shown, json.Deterministic(true))
	p.tool(t, out)
	return err
}

// Grammar constrains the text that a custom tool takes. Nil fields were omitted.
type Grammar struct{ Syntax, Definition *string }

// Custom adds a tool of the client's, which takes free text, or text of a grammar.
func (p *Plan) Custom(path, name string, description *string, g *Grammar) error {
	if !toolName.MatchString(name) {
		return invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
	}
	t := &run.Tool{Tool: model.Tool{Name: name, Custom: &model.FreeText{}}}
	if description != nil {
		t.Description = *description
	}
	format := map[string]any{"type": "text"}
	if g != nil {
		if g.Syntax == nil || g.Definition == nil || *g.Definition == "" || len(*g.Definition) > maxGrammar {
			return invalid("%s.format must have a syntax, lark or regex, and a definition of 1 to %d bytes with type grammar", path, maxGrammar)
		}
		t.Custom.Syntax, t.Custom.Grammar = model.Syntax(*g.Syntax), *g.Definition
		format = map[string]any{"type": "grammar", "syntax": *g.Syntax, "definition": *g.Definition}
	}
	out, err := json.Marshal(map[string]any{"type": customTool, "name": name, "description": description, "format": format}, json.Deterministic(true))
	p.tool(t, out)
	return err
}

// Types of the client's tools.
const (
	functionTool = "function"
	customTool   = "custom"
)

// clientType returns the type of a tool that the client runs.
func clientType(t *run.Tool) string {
	if t.Custom != nil {
		return customTool
	}
	return functionTool
}

// RemoteServer is an MCP server whose tools the model gets. Nil fields were omitted.
type RemoteServer struct {
	Label, URL                 string
	Description, Authorization *string
	Headers                    map[string]string
	DeferLoading               *bool
	AllowedCallers             []string
}

// Server checks an MCP server, and returns it without its filters.
func (p *Plan) Server(path string, in *RemoteServer) (s mcptool.Server, err error) {
	switch {
	case !serverLabel.MatchString(in.Label):
		return s, invalid("%s.server_label must have 1 to 64 letters, digits, _ and -, and begin with a letter", path)
	case p.hasServer(in.Label):
		return s, invalid("%s.server_label: duplicate %q", path, in.Label)
	case len(p.in.Servers) == maxServers:
		return s, invalid("tools must have at most %d of type mcp", maxServers)
	case is(in.DeferLoading):
		return s, invalid("%s.defer_loading must be false: the model is given all tools at once", path)
	case len(in.AllowedCallers) > 0 && !slices.Equal(in.AllowedCallers, []string{"direct"}):
		return s, invalid(`%s.allowed_callers must be ["direct"]: programs do not call these tools`, path)
	}
	s = mcptool.Server{Label: in.Label, Target: mcpclient.Target{URL: in.URL, Headers: in.Headers}}
	if in.Description != nil {
		if s.Description = *in.Description; len([]rune(s.Description)) > maxServerAbout {
			return s, invalid("%s.server_description must have at most %d characters", path, maxServerAbout)
		}
	}
	return s, authorize(path, in.Authorization, &s.Target)
}

// authorize adds the token to the headers for a server.
func authorize(path string, token *string, t *mcpclient.Target) error {
	if token == nil {
		return nil
	}
	if *token == "" {
		return invalid("%s.authorization must be a token", path)
	}
	headers := map[string]string{"Authorization": "Bearer " + strings.TrimPrefix(*token, "Bearer ")}
	for name, value := range t.Headers {
		if strings.EqualFold(name, "Authorization") {
			return invalid("%s has authorization and the header Authorization; give one of them", path)
		}
		headers[name] = value
	}
	t.Headers = headers
	return nil
}

// AddServer adds a server that may be asked.
func (p *Plan) AddServer(path string, s mcptool.Server) error {
	if err := p.s.MCP.Check(outbound.For(p.ctx, p.caller.Tenant.ID), path, &s); err != nil {
		return err
	}
	p.in.Servers = append(p.in.Servers, s)
	return nil
}

// Filter checks a choice of a server's tools.
func Filter(path string, names []string, readOnly *bool) (*mcptool.Filter, error) {
	if names != nil && len(names) == 0 || len(names) > mcpclient.MaxTools || names == nil && readOnly == nil {
		return nil, invalid("%s must name 1 to %d tools, or say whether they are read-only", path, mcpclient.MaxTools)
	}
	return &mcptool.Filter{Names: names, ReadOnly: readOnly}, nil
}

// CheckFilters rejects calls that always need an approval and never need one, and choices that would have
// no effect.
func CheckFilters(path string, always, never *mcptool.Filter) error {
	for _, name := range always.Names {
		if slices.Contains(never.Names, name) {
			return invalid("%s names %q in always and in never", path, name)
		}
	}
	if always.ReadOnly != nil || always.Names != nil && never.Names == nil {
		return invalid("%s.always must have tool_names beside tool_names of never, or nothing: calls that never does not name need an approval anyway", path)
	}
	return nil
}

// EndTools checks the tools as a whole.
func (p *Plan) EndTools() error { return p.q.CheckTools() }

// Choose sets whether the model has to call a tool, as the response shows it.
func (p *Plan) Choose(mode model.ToolMode, shown jsontext.Value) {
	p.q.Choice.Mode, p.set.ToolChoice = mode, shown
}

// ChooseRemote has the model call a tool of an MCP server, whose tools are not known yet.
func (p *Plan) ChooseRemote(label, name string) { p.q.Choice.Name = mcptool.Name(label, name) }

// ChooseClient has the model call a tool of the client's.
func (p *Plan) ChooseClient(name string) error { return p.choose(name) }

// ChooseServer has the model call code_interpreter or a web tool. ok is false for another type.
func (p *Plan) ChooseServer(kind string) (ok bool, err error) {
	switch {
	case slices.Contains(openAISearches, kind):
		return true, p.choose(web.SearchName)
	case IsWebTool(kind), kind == interpreter.Name:
		return true, p.choose(kind)
	}
	return false, nil
}

func (p *Plan) choose(name string) error {
	p.q.Choice.Name = name
	return p.q.CheckChoice()
}

// EndChoice checks the choice as a whole.
func (p *Plan) EndChoice() error {
	if p.q.Choice.Mode == model.ToolRequired && len(p.q.Tools)+len(p.in.Servers) == 0 {
		return invalid("tool_choice is required, and there are no tools")
	}
	return nil
}

// Allow leaves the model the tools of a type, or a name.
func (p *Plan) Allow(path, kind string, name *string) error {
	before := len(p.allowed)
	for _, t := range p.q.Tools {
		if kind == clientType(&t) && t.Handler == "" && name != nil && t.Name == *name || t.Handler != "" && (t.Handler == kind || t.Name == kind) {
			p.allowed = append(p.allowed, t)
		}
	}
	if len(p.allowed) == before {
		return invalid("%s names none of the request's tools", path)
	}
	return nil
}

// AllowOnly removes the tools that the choice does not allow.
func (p *Plan) AllowOnly(mode model.ToolMode) { p.q.Tools, p.q.Choice.Mode = p.allowed, mode }
