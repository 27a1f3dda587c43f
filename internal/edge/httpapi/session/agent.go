package session

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// request is what an agent's turns ask for, without their input. What this version does not
// have is refused by name.
func (r *rule) request() (*response.CreateResponse, error) {
	d := r.own
	q := &response.CreateResponse{Model: &d.Model.Name, Temperature: d.Model.Temperature, TopP: d.Model.TopP, Truncation: new("auto")}
	if d.System != "" {
		q.Instructions = &d.System
	}
	if d.Model.MaxTokens > 0 {
		q.MaxOutputTokens = &d.Model.MaxTokens
	}
	if d.MaxSteps > 0 {
		q.MaxSteps = new(int64(d.MaxSteps))
	}
	if d.Model.Effort != "" {
		q.Reasoning = &response.ReasoningSettings{Effort: &d.Model.Effort}
	}
	for i := range d.Tools {
		tool, err := r.asked(&d.Tools[i])
		if err != nil {
			return nil, err
		}
		if tool != nil && !slices.ContainsFunc(q.Tools, func(other jsontext.Value) bool { return string(other) == string(tool) }) {
			q.Tools = append(q.Tools, tool)
		}
	}
	if bySkill(d) && !slices.ContainsFunc(q.Tools, isSandbox) {
		q.Tools = append(q.Tools, sandboxAsked)
	}
	return q, nil
}

// bySkill reports whether an agent has the sandbox that has no name by one of its skills.
func bySkill(d *agent.Definition) bool {
	return slices.ContainsFunc(d.Skills, func(s agent.Skill) bool {
		return !s.Custom() && (s.Name == skill.Files || s.Name == skill.Browsing || s.Name == skill.Code && !d.Pooled())
	})
}

// sandboxAsked is the tool of the sandbox as a response is asked for it.
var sandboxAsked = jsontext.Value(`{"type":"sandbox"}`)

// pool are the tools of the named sandboxes of s, if its agent has them.
func (h *Handlers) pool(s *session.Session, d *agent.Definition) ([]run.Tool, error) {
	if !d.Pooled() {
		return nil, nil
	}
	all, err := h.Pool.Tools(string(s.Agent))
	return slices.DeleteFunc(all, func(t run.Tool) bool {
		return pooltool.Added(t.Name) && slices.ContainsFunc(d.Tools, func(own agent.Tool) bool { return own.Type == agent.Custom && own.Name == t.Name })
	}), err
}

func isSandbox(tool jsontext.Value) bool { return string(tool) == string(sandboxAsked) }

// asked is a tool as a response is asked for it; nil for one that the agent does not get.
func (r *rule) asked(t *agent.Tool) (jsontext.Value, error) {
	tool := map[string]any{"type": string(t.Type)}
	server := r.own.Server(t.Server)
	switch ours, known := agent.BuiltIn[t.Server]; {
	case t.Type == agent.Custom:
		tool["type"], tool["name"], tool["description"], tool["parameters"] = "function", t.Name, t.Description, t.Schema
		if len(t.Schema) == 0 {
			tool["parameters"] = nil
		}
	case t.Type == agent.MCP && server != nil && server.Command != "":
		return nil, nil // no response starts programs
	case t.Type == agent.MCP && server != nil:
		if r.excludes(server) {
			return nil, nil
		}
		tool["server_label"], tool["server_url"], tool["server_description"], tool["require_approval"] = server.Name, server.URL, server.Description, "never"
		if len(server.Headers) > 0 {
			tool["headers"] = server.Headers
		}
		if server.AllowedTools != nil {
			tool["allowed_tools"] = server.AllowedTools
		}
	case t.Type == agent.Sandboxes, t.Type == agent.MCP && ours == agent.Sandboxes:
		return nil, nil // no response has them
	case t.Type == agent.MCP && known:
		tool["type"] = string(ours)
	case t.Type == agent.MCP:
		return nil, nil // the agent's warnings say so
	}
	return json.Marshal(tool, json.Deterministic(true))
}

// A rule holds the tools of one agent to the policies of held, each of which has to allow a tool.
type rule struct {
	held   []*agent.Definition // the agents which the turn came by, own last
	own    *agent.Definition   // the agent whose tools these are
	online bool                // programs in the sandbox have a network
}

// govern makes of a turn's tools what the policies say. The turn's calls are held to it: what is
// left out here cannot be called, even if the model asks for it.
func (r *rule) govern(q *run.Request) {
	q.Tools = slices.DeleteFunc(q.Tools, func(t run.Tool) bool { return r.judge(&t) == agent.Denied })
	for i := range q.Tools {
		if t := &q.Tools[i]; t.Handler != "" && r.judge(t) == agent.Asks {
			t.Approve = true
		}
	}
}

// judge says what the policies say of a tool: the strictest counts. Allow lists are not about
// tools of skills and hand-offs, which reach nothing outside of the session and are there because
// those are. An agent that is handed work is held to the same policies.
func (r *rule) judge(t *run.Tool) agent.Verdict {
	out := agent.Allowed
	subject, server := r.subject(t), r.server(t)
	for _, d := range r.held {
		if t.Handler == skilltool.Handler || t.Handler == handoff.Handler {
			d = &agent.Definition{Policy: agent.Policy{Deny: d.Policy.Deny, Confirm: d.Policy.Confirm}}
		}
		out = min(out, d.Judge(subject, server))
	}
	return out
}

// server is the MCP server of a tool; nil for other tools.
func (r *rule) server(t *run.Tool) *agent.Server {
	if t.Server == "" {
		return nil
	}
	if s := r.own.Server(t.Server); s != nil {
		return s
	}
	return &agent.Server{Name: t.Server}
}

// subject describes a tool to policies.
func (r *rule) subject(t *run.Tool) agent.Subject {
	switch {
	case t.Server != "":
		return r.server(t).Remote(t.RemoteName, t.Name, r.online)
	case t.Handler == handoff.Handler:
		return agent.Subject{Names: []string{t.Name, agent.Handoffs}, Can: []agent.Class{agent.Delegate}}
	case t.Handler == sandboxtool.Handler:
		return agent.Builtin(agent.Sandbox, t.Name, r.online)
	case t.Handler == pooltool.Handler:
		return agent.Builtin(agent.Sandboxes, t.Name, r.online)
	case t.Handler != "" && t.Handler != skilltool.Handler:
		return agent.Builtin(agent.ToolType(t.Name), t.Name, r.online)
	}
	return agent.Subject{Names: []string{t.Name}}
}

// excludes reports whether one of the policies denies every tool of an MCP server.
func (r *rule) excludes(s *agent.Server) bool {
	return s.AllowedTools != nil && len(s.AllowedTools) == 0 ||
		slices.ContainsFunc(r.held, func(d *agent.Definition) bool { return d.Excludes(s, r.online) })
}

// offline reports whether the policies keep an agent from some of the web, so that its code gets
// none of it past them.
func (r *rule) offline() bool {
	return slices.ContainsFunc(r.held, func(d *agent.Definition) bool {
		return slices.ContainsFunc([]agent.ToolType{agent.WebSearch, agent.FetchURL}, func(kind agent.ToolType) bool {
			return d.Judge(agent.Builtin(kind, string(kind), r.online), nil) != agent.Allowed
		})
	})
}
