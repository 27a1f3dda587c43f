package agent

import (
	"slices"
	"strings"
)

// Verdict is the decision of a policy about a tool.
type Verdict int

// Verdicts.
const (
	Denied Verdict = iota
	Asks           // a call waits until the client has approved it
	Allowed
)

// Subject describes a tool to a policy.
type Subject struct {
	// Names are the tool's own name and those of its kind.
	Names []string
	// Covered are names of other tools: deny lists and confirmations that name them hold for this one.
	Covered []string
	// Server and Remote name a tool of an MCP server. The server chooses Remote, so an allow list
	// matches such a tool by Server or by Server/Remote, and never by Remote or Names.
	Server, Remote string
	// Class is the purpose of the tool, "" for none. An allow list admits a tool by it.
	Class Class
	// Can are all classes of effects of a call. Deny lists and confirmations match each of them.
	Can []Class
}

// Builtin describes a tool of ours, of a kind. online says that programs in the sandbox have a network.
func Builtin(kind ToolType, tool string, online bool) Subject {
	s := Subject{Names: append(kind.Names(), tool), Class: classes[tool], Can: effects(tool, online)}
	if s.Class == Code {
		s.Covered = append(s.Covered, runCode)
	}
	if kind == Sandboxes {
		s.Covered = append(s.Covered, string(Sandbox))
	}
	return s
}

// Remote describes a tool of an MCP server. name is the name that the model calls it by.
func (s *Server) Remote(tool, name string, online bool) Subject {
	out := Subject{Names: []string{name}, Server: s.Name, Remote: tool, Can: []Class{Network}}
	if s.Command != "" {
		out.Can = programs(online)
	}
	return out
}

// Judge decides about a tool. A match in Deny wins over one in Allow.
func (p *Policy) Judge(s *Subject) Verdict {
	switch {
	case s.restricted(p.Deny), p.Allow != nil && !s.admitted(p.Allow):
		return Denied
	case s.restricted(p.Confirm):
		return Asks
	}
	return Allowed
}

// Judge decides about a tool of an agent that d, or an agent which d handed work to, has. server
// is the tool's MCP server; nil for other tools.
func (d *Definition) Judge(s Subject, server *Server) Verdict {
	if server != nil && d.Policy.Allow != nil && !d.knows(server) {
		return Denied
	}
	if d.shadows(s.Class) {
		s.Class = ""
	}
	return d.Policy.Judge(&s)
}

// Excludes reports whether d denies every tool of an MCP server, so that nothing asks the server for them.
func (d *Definition) Excludes(s *Server, online bool) bool {
	named := func(name string) bool { return name == s.Name || strings.HasPrefix(name, s.Name+"/") }
	if d.Policy.Allow != nil && !(d.knows(s) && slices.ContainsFunc(d.Policy.Allow, named)) {
		return true
	}
	subject, p := s.Remote("", "", online), Policy{Deny: d.Policy.Deny}
	return p.Judge(&subject) == Denied
}

// admitted reports whether an allow list names s.
func (s *Subject) admitted(list []string) bool {
	if s.Server != "" {
		return names(list, s.Server, s.Server+"/"+s.Remote)
	}
	return names(list, s.Names...) || names(list, string(s.Class))
}

// restricted reports whether a deny list, or one of confirmations, names s in any way.
func (s *Subject) restricted(list []string) bool {
	if s.Server != "" && names(list, s.Server, s.Remote, s.Server+"/"+s.Remote) || names(list, s.Names...) || names(list, s.Covered...) {
		return true
	}
	return slices.ContainsFunc(s.Can, func(c Class) bool { return names(list, string(c)) })
}

// names reports whether a list has one of the names that are not empty.
func names(list []string, of ...string) bool {
	return slices.ContainsFunc(of, func(name string) bool { return name != "" && slices.Contains(list, name) })
}

// Names are what a tool of ours of a kind goes by.
func (t ToolType) Names() []string {
	names := []string{string(t)}
	for name, kind := range BuiltIn {
		if kind == t && name != string(t) {
			names = append(names, name)
		}
	}
	return names
}
