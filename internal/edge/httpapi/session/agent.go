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
func request(d *agent.Definition) (*response.CreateResponse, error) {
	q := &response.CreateResponse{Model: &d.Model.Name, Temperature: d.Model.Temperature, TopP: d.Model.TopP, Truncation: new("auto")}
	if d.System != "" {
		q.Instructions = &d.System
	}
	if d.Model.MaxTokens > 0 {
		q.MaxOutputTokens = &d.Model.MaxTokens
	}
	if d.Model.Effort != "" {
		q.Reasoning = &response.ReasoningSettings{Effort: &d.Model.Effort}
	}
	for i := range d.Tools {
		tool, err := asked(d, &d.Tools[i])
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
func asked(d *agent.Definition, t *agent.Tool) (jsontext.Value, error) {
	tool := map[string]any{"type": string(t.Type)}
	server := d.Server(t.Server)
	switch ours, known := agent.BuiltIn[t.Server]; {
	case t.Type == agent.Custom:
		tool["type"], tool["name"], tool["description"], tool["parameters"] = "function", t.Name, t.Description, t.Schema
		if len(t.Schema) == 0 {
			tool["parameters"] = nil
		}
	case t.Type == agent.MCP && server != nil && server.Command != "":
		return nil, nil // no response starts programs
	case t.Type == agent.MCP && server != nil:
		if slices.Contains(d.Policy.Deny, server.Name) || server.AllowedTools != nil && len(server.AllowedTools) == 0 {
			return nil, nil // it need not be asked what it has
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

// govern makes of a turn's tools what policies say, each of which has to allow a tool. The turn's
// calls are held to it: what is left out here cannot be called, even if the model asks for it.
func govern(policies []*agent.Policy) func(*run.Request) {
	return func(q *run.Request) {
		q.Tools = slices.DeleteFunc(q.Tools, func(t run.Tool) bool { return judge(policies, &t) == agent.Denied })
		for i := range q.Tools {
			if t := &q.Tools[i]; t.Handler != "" && judge(policies, t) == agent.Asks {
				t.Approve = true
			}
		}
	}
}

// judge says what policies say of a tool: the strictest counts. Lists of what is allowed are not
// about tools of skills and hand-offs, which reach nothing outside of the session and are there
// because those are. An agent that is handed work is held to the same policies.
func judge(policies []*agent.Policy, t *run.Tool) agent.Verdict {
	out := agent.Allowed
	for _, p := range policies {
		if t.Handler == skilltool.Handler || t.Handler == handoff.Handler {
			p = &agent.Policy{Deny: p.Deny, Confirm: p.Confirm}
		}
		out = min(out, p.Judge(names(t)...))
	}
	return out
}

// names are what a policy may call a tool.
func names(t *run.Tool) []string {
	switch {
	case t.Server != "":
		return []string{t.Name, t.Server, t.Server + "/" + t.RemoteName, t.RemoteName}
	case t.Handler == skilltool.Handler:
		return []string{t.Name}
	case t.Handler == handoff.Handler:
		return []string{t.Name, "handoffs"}
	case t.Handler == sandboxtool.Handler:
		return append(agent.Sandbox.Names(), t.Name)
	case t.Handler == pooltool.Handler:
		return append(agent.Sandboxes.Names(), t.Name)
	case t.Handler != "":
		return agent.ToolType(t.Name).Names()
	}
	return []string{t.Name}
}

// webless reports whether policies keep an agent from some of the web, so that its code gets
// none of it past them.
func webless(policies []*agent.Policy) bool {
	return slices.ContainsFunc(policies, func(p *agent.Policy) bool {
		return slices.ContainsFunc([]agent.ToolType{agent.WebSearch, agent.FetchURL}, func(kind agent.ToolType) bool { return p.Judge(kind.Names()...) != agent.Allowed })
	})
}
