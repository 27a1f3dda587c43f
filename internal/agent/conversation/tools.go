package conversation

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/web"
)

// maxServers bounds the MCP servers at URLs that one turn uses.
const maxServers = 16

// remote is an MCP server at a URL, with the path of the tool that names it.
type remote struct {
	path string
	mcptool.Server
}

// tools gives q the tools of the agent's definition, and returns the MCP servers at URLs that have others.
// A web tool that the server has turned off becomes a warning.
func (r *rule) tools(q *run.Request, service *web.Service) (servers []remote, err error) {
	d := r.own
	given := map[agent.ToolType]bool{} // tools of ours: an agent may name one in two ways
	for i := range d.Tools {
		t := &d.Tools[i]
		switch kind := d.Kind(t); kind {
		case agent.Custom:
			q.Tools = append(q.Tools, run.Tool{Tool: model.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema}})
		case agent.MCP:
			server := d.Server(t.Server) // nil: the agent's warnings say so
			if server == nil || server.Command != "" || r.excludes(server) {
				continue
			}
			if len(servers) == maxServers {
				return nil, invalid("tools must have at most %d of type mcp", maxServers)
			}
			servers = append(servers, remote{fmt.Sprintf("tools[%d]", i), mcptool.Server{
				Label: server.Name, Description: server.Description, Never: &mcptool.Filter{}, Allowed: mcptool.Filter{Names: server.AllowedTools},
				Target: mcpclient.Target{URL: server.URL, Headers: server.Headers}, Optional: true,
			}})
		case agent.Sandbox:
			if !given[kind] {
				q.Tools = append(q.Tools, sandboxtool.Tools()...)
			}
			given[kind], q.PlaceFiles = true, true
		case agent.WebSearch, agent.FetchURL:
			if given[kind] {
				continue
			}
			given[kind] = true
			if err := addWebTool(q, kind, service); err != nil {
				return nil, err
			}
		}
	}
	if hasSandboxSkill(d) && !given[agent.Sandbox] {
		q.Tools, q.PlaceFiles = append(q.Tools, sandboxtool.Tools()...), true
	}
	return servers, nil
}

// addWebTool gives q a tool of the web, or a warning if the server has it turned off.
func addWebTool(q *run.Request, kind agent.ToolType, service *web.Service) error {
	query, off := web.Query{Kind: web.Web}, service.CheckFetch
	if kind == agent.WebSearch {
		off = func() error { return service.Check(query) }
	}
	if why := off(); why != nil {
		q.Warn(run.Warning{Code: run.ToolUnavailable, Message: why.Error() + "."})
		return nil
	}
	var t run.Tool
	var err error
	if kind == agent.WebSearch {
		t, err = webtool.Search(webtool.Options{Shown: web.SearchName, Query: query}, "")
	} else {
		t, err = webtool.Fetch(webtool.Options{Shown: web.FetchName, MaxURLs: web.MaxURLs})
	}
	q.Tools = append(q.Tools, t)
	return err
}

// hasSandboxSkill reports whether a skill gives the agent the sandbox that has no name.
func hasSandboxSkill(d *agent.Definition) bool {
	return slices.ContainsFunc(d.Skills, func(s agent.Skill) bool {
		b := skill.Find(s.Name)
		return !s.Custom() && b != nil && (b.Needs == skill.Unnamed || b.Needs == skill.AnySandbox && !d.Pooled())
	})
}

// pool returns the tools of the session's named sandboxes, if its agent has them.
func (s *Service) pool(of *session.Session, d *agent.Definition) ([]run.Tool, error) {
	if !d.Pooled() {
		return nil, nil
	}
	all, err := s.Pool.Tools(string(of.Agent))
	return slices.DeleteFunc(all, func(t run.Tool) bool {
		return pooltool.Added(t.Name) && slices.ContainsFunc(d.Tools, func(own agent.Tool) bool { return own.Type == agent.Custom && own.Name == t.Name })
	}), err
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
