package agent

import "slices"

// Class is an effect that tools have. Policies name classes beside tools, so that a list holds for
// tools whose names its author does not know, such as those of an agent that work is handed to.
type Class string

// Classes.
const (
	Code     Class = "code"     // runs programs that the model writes
	Files    Class = "files"    // reads or writes files of a sandbox
	Network  Class = "network"  // sends to, or reads from, hosts outside of the sandbox
	Delegate Class = "delegate" // hands work to other agents
)

// Classes lists every class.
var Classes = []Class{Code, Files, Network, Delegate}

// Names in policies that have a meaning of their own.
const (
	runCode  = "run_code"
	Handoffs = "handoffs" // all tools by which an agent hands on
)

// classes maps built-in tools to their classes; "" for a tool without such effects.
var classes = map[string]Class{}

// RegisterTool declares a built-in tool. Policies treat its calls by the class c; "" means that no
// class names its effects. It is for init functions of the packages that implement tools.
func RegisterTool(name string, c Class) { classes[name] = c }

// ClassOf returns the class of a built-in tool; ok is false for a tool that is not built in.
func ClassOf(tool string) (c Class, ok bool) {
	c, ok = classes[tool]
	return
}

// effects returns all classes of effects of a built-in tool.
func effects(tool string, online bool) []Class {
	switch c := classes[tool]; c {
	case Code:
		return programs(online)
	case "":
		return nil
	default:
		return []Class{c}
	}
}

// programs are the classes of effects of programs in the sandbox.
func programs(online bool) []Class {
	if online {
		return []Class{Code, Files, Network}
	}
	return []Class{Code, Files}
}

// reserved reports whether a name in a policy is that of a class, or of a built-in tool or kind.
func reserved(name string) bool {
	_, kind := BuiltIn[name]
	_, tool := classes[name]
	return kind || tool || name == Handoffs || slices.Contains(Classes, Class(name))
}

// knows reports whether d means the server s by its name: d has the same server under that name,
// or nothing else that goes by it.
func (d *Definition) knows(s *Server) bool {
	if own := d.Server(s.Name); own != nil {
		return own.URL == s.URL && own.Command == s.Command && slices.Equal(own.Args, s.Args)
	}
	return !reserved(s.Name) && !d.hasCustom(s.Name)
}

// shadows reports whether the name of a class is that of a server or custom tool of d, which an
// allow list of d then means by it.
func (d *Definition) shadows(c Class) bool {
	return d.Server(string(c)) != nil || d.hasCustom(string(c))
}

func (d *Definition) hasCustom(name string) bool {
	return slices.ContainsFunc(d.Tools, func(t Tool) bool { return t.Type == Custom && t.Name == name })
}
