// Package toolset configures the tools of an agent as sets: the built-in tools, and the tools of each MCP
// server, with a default and settings of single tools. It keeps them as the tools and the policy of the
// agent, and reads them back.
package toolset

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// member is a tool of the built-in set, and the tools of Atoll that it stands for.
type member struct {
	name  string
	kind  agent.ToolType
	names []string // by which a policy denies it, or has it confirmed
}

var members = []member{
	{"bash", agent.Sandbox, []string{"run_code"}},
	{"read", agent.Sandbox, []string{"read_file"}},
	{"write", agent.Sandbox, []string{"write_file"}},
	{"edit", agent.Sandbox, []string{"edit_file", "apply_patch"}},
	{"glob", agent.Sandbox, []string{"glob"}},
	{"grep", agent.Sandbox, []string{"grep"}},
	{"web_fetch", agent.FetchURL, []string{"fetch_url"}},
	{"web_search", agent.WebSearch, []string{"web_search"}},
}

// Manages reports whether sets say what a name in a list of a policy says.
func Manages(d *agent.Definition, name string) bool {
	for _, m := range members {
		if slices.Contains(m.names, name) || slices.Contains(m.kind.Names(), name) {
			return true
		}
	}
	server, _, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return t.Type == agent.MCP && t.Server == server })
}

// Forget removes the rules of toolsets from a policy, before other toolsets replace them. It keeps an
// allow list, which restricts all tools.
func Forget(d *agent.Definition) {
	rest := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return Manages(d, name) })
	}
	d.Policy.Deny, d.Policy.Confirm = rest(d.Policy.Deny), rest(d.Policy.Confirm)
}

// Setting says whether a tool may be called, and whether the client is asked first.
type Setting struct{ Enabled, Ask bool }

// Set is the settings of a set: the default, and those of tools by name.
type Set struct {
	Default Setting
	own     map[string]Setting
	names   []string // of own, in their order
}

// CheckName rejects a name, at a path of the request, that no tool can have or that was given before.
func (s *Set) CheckName(path string, name *string) error {
	if name == nil || *name == "" || strings.Contains(*name, "/") {
		return invalid("%s.name must be the name of a tool", path)
	}
	if _, twice := s.own[*name]; twice {
		return invalid("%s.name: duplicate %q", path, *name)
	}
	return nil
}

// Put sets the setting of a tool.
func (s *Set) Put(name string, own Setting) {
	if s.own == nil {
		s.own = map[string]Setting{}
	}
	s.own[name] = own
	s.names = append(s.names, name)
}

// AddBuiltin adds the built-in tools to an agent. It omits tools that are off on this server, unless the
// set names them.
func (s *Set) AddBuiltin(d *agent.Definition, path string, off func(agent.ToolType) error) error {
	for name := range s.own {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			return invalid("%s.configs: there is no tool %q", path, name)
		}
	}
	of := func(m member) Setting {
		if own, ok := s.own[m.name]; ok {
			return own
		}
		if off != nil && off(m.kind) != nil {
			return Setting{}
		}
		return s.Default
	}
	there := func(kind agent.ToolType) bool {
		return slices.ContainsFunc(d.Tools, func(o agent.Tool) bool { return o.Type == kind })
	}
	if there(agent.Sandbox) || there(agent.WebSearch) || there(agent.FetchURL) {
		return invalid("%s: there is another toolset of this type", path)
	}
	for _, m := range members {
		if of(m).Enabled && !there(m.kind) {
			d.Tools = append(d.Tools, agent.Tool{Type: m.kind})
		}
	}
	for _, m := range members {
		switch own := of(m); {
		case !there(m.kind): // with all of its kind
		case !own.Enabled:
			d.Policy.Deny = append(d.Policy.Deny, m.names...)
		case own.Ask:
			d.Policy.Confirm = append(d.Policy.Confirm, m.names...)
		}
	}
	return nil
}

// AddServer adds the tools of an MCP server to an agent.
func (s *Set) AddServer(d *agent.Definition, path, of string) error {
	def, server := s.Default, d.Server(of)
	if server == nil && (!def.Enabled || len(s.own) > 0) {
		return invalid("%s.mcp_server_name: only the tools of one of mcp_servers can be configured, and there is no %q", path, of)
	}
	d.Tools = append(d.Tools, agent.Tool{Type: agent.MCP, Server: of})
	if server != nil {
		server.AllowedTools = nil
		if !def.Enabled {
			server.AllowedTools = []string{}
		}
	}
	if def.Enabled && def.Ask {
		d.Policy.Confirm = append(d.Policy.Confirm, of)
	}
	for i, name := range s.names { // in their order, so that the same makes the same version
		own := s.own[name]
		switch {
		case !own.Enabled && def.Enabled:
			d.Policy.Deny = append(d.Policy.Deny, of+"/"+name)
		case own.Enabled && !def.Enabled:
			server.AllowedTools = append(server.AllowedTools, name)
		}
		switch {
		case own.Enabled && own.Ask && !(def.Enabled && def.Ask):
			d.Policy.Confirm = append(d.Policy.Confirm, of+"/"+name)
		case own.Enabled && !own.Ask && def.Enabled && def.Ask:
			return invalid("%s.configs[%d].permission_policy: below a default of always_ask there is no always_allow in this version", path, i)
		}
	}
	return nil
}

// Judged is a tool that differs from the default of its set.
type Judged struct {
	Name    string
	Verdict agent.Verdict
}

// Builtin returns the built-in tools that an agent cannot call, or calls only after an approval.
func Builtin(d *agent.Definition) (out []Judged) {
	for _, m := range members {
		verdict := agent.Denied
		if slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return d.Kind(&t) == m.kind }) {
			verdict = agent.Allowed
			for _, name := range m.names {
				verdict = min(verdict, d.Judge(agent.Builtin(m.kind, name, false), nil))
			}
		}
		if verdict != agent.Allowed {
			out = append(out, Judged{m.name, verdict})
		}
	}
	return out
}

// Server returns the default for the tools of an MCP server, and the tools that differ.
func Server(d *agent.Definition, of string) (def agent.Verdict, own []Judged) {
	server := d.Server(of)
	known := server
	if known == nil {
		known = &agent.Server{Name: of}
	}
	def = d.Judge(known.Remote("", "", false), server)
	var names []string // that differ, in the order in which they are named
	if server != nil && server.AllowedTools != nil {
		def, names = agent.Denied, slices.Clone(server.AllowedTools)
	}
	for _, list := range [][]string{d.Policy.Deny, d.Policy.Confirm, d.Policy.Allow} {
		for _, name := range list {
			if len(name) > len(of)+1 && name[:len(of)+1] == of+"/" && !slices.Contains(names, name[len(of)+1:]) {
				names = append(names, name[len(of)+1:])
			}
		}
	}
	for _, name := range names {
		v := d.Judge(known.Remote(name, "", false), server)
		if server != nil && server.AllowedTools != nil && !slices.Contains(server.AllowedTools, name) {
			v = agent.Denied
		}
		if v != def {
			own = append(own, Judged{name, v})
		}
	}
	return def, own
}

// SetServers replaces the MCP servers of an agent. A server with the name and URL of an old one keeps its headers,
// description and choice of tools. Servers that are commands stay.
func SetServers(d *agent.Definition, servers []agent.Server) {
	before := *d
	d.Servers = nil
	for _, server := range servers {
		if old := before.Server(server.Name); old != nil && old.URL == server.URL {
			server = *old
		} else if old != nil {
			server.AllowedTools = old.AllowedTools // never more than before, unless tools say so
		}
		d.Servers = append(d.Servers, server)
	}
	for _, old := range before.Servers { // which clients of sets do not know
		if old.Command != "" && d.Server(old.Name) == nil {
			d.Servers = append(d.Servers, old)
		}
	}
}

// PolicyKey is the key of metadata that repeat the policy.
const PolicyKey = "tool_policy"

// SyncMetadata updates metadata that repeat the policy.
func SyncMetadata(d *agent.Definition) error {
	if _, there := d.Metadata[PolicyKey]; !there {
		return nil
	}
	policy := map[string]any{"allow_list": d.Policy.Allow, "deny_list": d.Policy.Deny, "require_confirmation": d.Policy.Confirm}
	if d.Policy.Within > 0 {
		policy["confirm_within"] = d.Policy.Within
	}
	text, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	d.Metadata = maps.Clone(d.Metadata)
	d.Metadata[PolicyKey] = text
	return nil
}
